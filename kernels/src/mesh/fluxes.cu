// Flux registers at coarse-fine faces: the twin of fluxes.rs and of the engine's registers.

namespace mesh {

typedef parameters::CorrectionParameters<REAL> CorrectionParameters;

// Patches per block.
constexpr int ASSIGN_CHUNK = 256;

// Values per block.
constexpr int COMMIT_CHUNK = 4096;

// Assigns a unique slot to each face in `bits`. Returns the number of slots.
RS_FN int assign_slots(int bits, unsigned* taken, int* slots) {
  int n = 0;
  for (int f = 0; f < 6; ++f) n += bits >> f & 1;
  int next = n ? (int)launch::atomic_add(taken, (unsigned)n) : 0;
  for (int f = 0; f < 6; ++f) slots[f] = bits >> f & 1 ? next++ : -1;
  return n;
}

// Positions of the two sides of a coarse-fine face, for one coarse cell.
struct Mismatch {
  rs::i64 coarse, fine;  // where component 0 stands
  REAL width;
  bool upper;
};

// Returns the registers of face f of `row` (coarse slot `slot`) at the cell x, y, z next to it.
RS_FN Mismatch mismatch_at(const CorrectionParameters& p, int row, int f, int slot, int x, int y, int z) {
  const int slow = f < 4 ? z : y, fast = f < 2 ? y : x;
  const int slow_axis = f < 4 ? 2 : 1, fast_axis = f < 2 ? 1 : 0;
  const int neighbour = p.neighbours[(rs::i64)row * AROUND + face_direction(f)];
  // the upper half of the neighbour lies next to a lower face
  const int child = (1 - f % 2) << (f / 2) | (fast / 4) << fast_axis | (slow / 4) << slow_axis;
  const int fine = p.fine_slot[(rs::i64)(p.first_child[neighbour] + child) * 6 + (f ^ 1)];
  Mismatch m;
  m.coarse = (rs::i64)slot * (COMPONENTS * FACE) + fast + PATCH * slow;
  m.fine = (rs::i64)fine * (COMPONENTS * QUARTER) + fast % 4 + 4 * (slow % 4);
  m.width = (REAL)p.inverse_width[f / 2];
  m.upper = f % 2 == 1;
  return m;
}

RS_FN REAL correction(const CorrectionParameters& p, const Mismatch& m, int c) {
  const REAL difference = ::nestar_kernels::mesh::fluxes::flux_mismatch<REAL>(
      p.coarse[m.coarse + c * FACE], p.reference[m.fine + c * QUARTER], p.change[m.fine + c * QUARTER], (REAL)p.dt);
  // a larger flux through an upper face decreases the value, through a lower face increases it
  return m.upper ? -(difference * m.width) : difference * m.width;
}

// Finds the registers next to a cell, at most one per axis. Returns their axes as bits.
RS_FN int mismatches_of(const CorrectionParameters& p, int row, int x, int y, int z, Mismatch* m) {
  const int place[3] = {x, y, z};
  int axes = 0;
  RS_UNROLL for (int a = 0; a < 3; ++a) {
    if (place[a] != 0 && place[a] != PATCH - 1) continue;
    const int f = 2 * a + (place[a] != 0), slot = p.coarse_slot[(rs::i64)row * 6 + f];
    if (slot < 0) continue;
    m[a] = mismatch_at(p, row, f, slot, x, y, z);
    axes |= 1 << a;
  }
  return axes;
}

// Returns the corrections of a cell, summed over the axes. `changed` becomes true if one of them is not 0.
RS_FN bool sums_of(const CorrectionParameters& p, int row, int cell, REAL* sums) {
  Mismatch m[3];
  const int axes = mismatches_of(p, row, cell & 7, cell >> 3 & 7, cell >> 6, m);
  bool changed = false;
  EACH_COMPONENT(c) {
    REAL change[3];
    RS_UNROLL for (int a = 0; a < 3; ++a) change[a] = axes >> a & 1 ? correction(p, m[a], c) : REAL(0);
    sums[c] = ::nestar_device::math::sums::sum3<REAL>(change[0], change[1], change[2]);
    changed |= sums[c] != REAL(0);
  }
  return axes && changed;
}

// Stores the state of a cell, which was `before` until it was corrected. If round-off has made it unphysical, repairs it.
RS_FN void store_corrected(const CorrectionParameters& p, REAL* values, REAL* u, REAL* before) {
  if constexpr (field::HAS_REMAINDER) {
    REAL kept[COMPONENTS];
    EACH_COMPONENT(c) kept[c] = before[c];
    field::to_remainder(kept);
    keep_remainder(u, kept);
  }
  if (!field::physical(u)) {
    field::to_primitive(before);
    field::repair(u, before);
    launch::atomic_add(&p.repaired->corrections, rs::u64(1));
  }
  if constexpr (field::HAS_DEPENDENTS) field::reconcile(u);
  EACH_COMPONENT(c) values[c * CELLS] = u[c];
}

// Corrects a cell. Returns false if it would lose all of component 0 and more; then it does not change.
RS_FN bool correct_cell(const CorrectionParameters& p, int row, int cell) {
  REAL sums[COMPONENTS];
  if (!sums_of(p, row, cell, sums)) return true;
  REAL* values = row_of(p.level, row) + cell;
  REAL u[COMPONENTS], before[COMPONENTS];
  EACH_COMPONENT(c) {
    before[c] = values[c * CELLS];
    u[c] = before[c] + sums[c];
  }
  if (field::LEADING > 0 && before[0] > REAL(0) && u[0] <= REAL(0)) return false;
  store_corrected(p, values, u, before);
  return true;
}

// What the cells of a patch lack after corrections that would empty some of them: the twin of `share_deficit` in the engine's operators.
struct Deficit {
  REAL of[COMPONENTS];
  REAL total;
};

// Lets the emptied cells keep a tenth of component 0. One thread.
RS_FN void correct_emptied(const CorrectionParameters& p, int row, const unsigned* emptied, Deficit& deficit) {
  EACH_COMPONENT(c) deficit.of[c] = REAL(0);
  REAL* first = row_of(p.level, row);
  int one = -1;
  for (int cell = 0; cell < CELLS; ++cell) {
    if (!(emptied[cell / 32] >> cell % 32 & 1)) continue;
    if (one < 0) one = cell;
    REAL sums[COMPONENTS], u[COMPONENTS], before[COMPONENTS];
    sums_of(p, row, cell, sums);
    EACH_COMPONENT(c) before[c] = first[c * CELLS + cell];
    const REAL part = (REAL(0.1) * before[0] - before[0]) / sums[0];
    EACH_COMPONENT(c) {
      const REAL given = part * sums[c];
      u[c] = before[c] + given;
      if (c < field::LEADING) deficit.of[c] += sums[c] - given;
    }
    store_corrected(p, first + cell, u, before);
  }
  deficit.total = REAL(0);
  for (int cell = 0; cell < CELLS; ++cell) deficit.total += first[cell];
  if (deficit.total + REAL(2) * deficit.of[0] <= REAL(0)) {
    deficit.total = REAL(0);
    REAL u[COMPONENTS], before[COMPONENTS];
    EACH_COMPONENT(c) u[c] = before[c] = first[c * CELLS + one];
    u[0] = before[0] + deficit.of[0];
    store_corrected(p, first + one, u, before);
  }
}

// Takes the share of a cell from it.
RS_FN void take_share(const CorrectionParameters& p, int row, int cell, const Deficit& deficit) {
  REAL* values = row_of(p.level, row) + cell;
  REAL u[COMPONENTS], before[COMPONENTS];
  EACH_COMPONENT(c) before[c] = values[c * CELLS];
  const REAL share = before[0] / deficit.total;
  for (int c = 0; c < field::LEADING; ++c) u[c] = before[c] + share * deficit.of[c];
  const REAL kept = u[0] / before[0];
  for (int c = field::LEADING; c < COMPONENTS; ++c) u[c] = before[c] * kept;
  store_corrected(p, values, u, before);
}

}  // namespace mesh

// Gives every face of a leaf patch with a refined neighbour a coarse-side register.
KERNEL(mesh_assign_coarse, mesh::parameters::AssignParameters) {
  using namespace mesh;
  EACH(i, ASSIGN_CHUNK) {
    const int n = launch::block() * ASSIGN_CHUNK + i;
    if (n >= p.count) continue;
    const rs::i64 row = p.rows[n];
    int bits = 0;
    for (int f = 0; f < 6 && p.first_child[row] == LEAF; ++f) {
      const int neighbour = p.neighbours[row * AROUND + face_direction(f)];
      bits |= (neighbour >= 0 && p.first_child[neighbour] >= 0) << f;
    }
    if (assign_slots(bits, &p.counts->coarse, p.coarse_slot + row * 6))
      p.corrected[launch::atomic_add(&p.counts->corrected, 1u)] = (int)row;
    for (int f = 0; f < 6 && p.clear; ++f) p.fine_slot[row * 6 + f] = -1;
  }
}

// Gives every face of a patch with a coarser neighbour a fine-side register.
KERNEL(mesh_assign_fine, mesh::parameters::AssignParameters) {
  using namespace mesh;
  EACH(i, ASSIGN_CHUNK) {
    const int n = launch::block() * ASSIGN_CHUNK + i;
    if (n >= p.count) continue;
    const rs::i64 row = p.rows[n];
    int bits = 0;
    for (int f = 0; f < 6; ++f) bits |= (p.neighbours[row * AROUND + face_direction(f)] == COARSER) << f;
    assign_slots(bits, &p.counts->fine, p.fine_slot + row * 6);
  }
}

// Adds the fluxes or circulations of an accepted step to the registers of the coarser level.
KERNEL(mesh_commit, mesh::parameters::CommitParameters<mesh::REAL>) {
  using namespace mesh;
  EACH(i, COMMIT_CHUNK) {
    const rs::i64 n = (rs::i64)launch::block() * COMMIT_CHUNK + i;
    if (n >= p.count) continue;
    if (p.begun) {
      p.change[n] += (REAL)p.dt * (p.attempt[n] - p.reference[n]);
    } else {
      p.reference[n] = p.attempt[n];
      p.change[n] = REAL(0);
    }
  }
}

// Replaces coarse by fine fluxes in the cells next to coarse-fine faces. One block per patch.
KERNEL(mesh_correct, mesh::CorrectionParameters) {
  using namespace mesh;
  SHARED unsigned emptied[CELLS / 32 + 1];
  SHARED Deficit deficit;
  const int row = p.rows[launch::block()];
  EACH(word, CELLS / 32 + 1) emptied[word] = 0;
  launch::barrier();
  EACH(cell, CELLS) {
    if (!correct_cell(p, row, cell)) {
      launch::atomic_or(&emptied[cell / 32], 1u << cell % 32);
      launch::atomic_or(&emptied[CELLS / 32], 1u);
    }
  }
  launch::barrier();
  if (launch::thread() == 0) p.stale[row] = 1;
  if (!emptied[CELLS / 32]) return;
  if (launch::thread() == 0) correct_emptied(p, row, emptied, deficit);
  launch::barrier();
  if (deficit.total > REAL(0)) EACH(cell, CELLS) take_share(p, row, cell, deficit);
}
