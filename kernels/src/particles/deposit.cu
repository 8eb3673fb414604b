// Mass deposit, as in the host code. Include after deep_part.cuh.

namespace particles {

// Deposits the cloud of a particle in a block, or removes it. The offset is in a patch `finer` levels finer, `patch` patches
// from the first of the block.
template<int WIDTH> RS_FN void add_cloud(u64* block, const u64* offset, const int* patch, int finer, u64 mass, bool added) {
  int at[3][WIDTH];
  unsigned share[3];
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const int first = mesh::PATCH * patch[axis] + cloud::first_cell(offset[axis], WIDTH);
    share[axis] = cloud::share(offset[axis], WIDTH);
    RS_UNROLL for (int k = 0; k < WIDTH; ++k) at[axis][k] = ((first + k) >> finer) + AROUND;
  }
  const auto along_z = cloud::parts(mass, share[2], WIDTH);
  RS_UNROLL for (int k = 0; k < WIDTH; ++k) {
    const auto along_y = cloud::parts(along_z.d[k], share[1], WIDTH);
    RS_UNROLL for (int j = 0; j < WIDTH; ++j) {
      const auto along_x = cloud::parts(along_y.d[j], share[0], WIDTH);
      RS_UNROLL for (int i = 0; i < WIDTH; ++i) {
        if (along_x.d[i] != 0) launch::add_shared(block + at[0][i] + SIDE * (at[1][j] + SIDE * at[2][k]), added ? along_x.d[i] : (u64)0 - along_x.d[i]);
      }
    }
  }
}

RS_FN void add_any(int width, u64* block, const u64* offset, const int* patch, int finer, u64 mass, bool added = true) {
  if (width == 2) add_cloud<2>(block, offset, patch, finer, mass, added);
  else if (width == 1) add_cloud<1>(block, offset, patch, finer, mass, added);
  else add_cloud<3>(block, offset, patch, finer, mass, added);
}

// Width of clouds in cells of a coarser level, as in the host code.
RS_FN int wide_cloud(int width) { return width < 2 ? 2 : width; }

// Slots of the sums around a block. They are found by the rows around its centre, or in a host table where
// some neighbours are not own patches.
struct Targets {
  const int *rows, *slots;
  RS_MEMBER bool is_outside(int d) const { return (slots != nullptr ? slots : rows)[d] == mesh::OUTSIDE; }
};

// Returns the slots for particles of a row whose block is `up` levels above it.
RS_FN Targets targets(const args::DepositParameters& p, int row, int up, bool wide) {
  const int* shared = wide ? p.shared_wide : p.shared;
  if (shared != nullptr && shared[row] >= 0) return Targets{nullptr, p.slot_tables + 27 * (i64)shared[row]};
  for (int n = 0; n < up; ++n) row = p.from.tables.parent[row];
  return Targets{around(p.from.tables, row), nullptr};
}

// Returns the slot in a direction, negative if there is none. Coarse sums exist for refined patches only.
RS_FN int slot_of(const args::DepositParameters& p, const Targets& to, int d, bool wide) {
  if (to.slots != nullptr) return to.slots[d];
  const int row = to.rows[d];
  return row < 0 || (wide && is_leaf(p.from.tables, row)) ? -1 : p.slots[row];
}

// Adds a block to the sums of the surrounding patches; coarse blocks only to refined patches.
RS_FN void scatter(const args::DepositParameters& p, const u64* block, const Targets& to, bool wide) {
  EACH(n, BLOCK) {
    const u64 mass = block[n];
    if (mass == 0) continue;
    int at[3] = {n % SIDE - AROUND, n / SIDE % SIDE - AROUND, n / (SIDE * SIDE) - AROUND}, step[3], inwards[3];
    u64 times[3];
    for (int axis = 0; axis < 3; ++axis) {
      step[axis] = at[axis] < 0 ? -1 : at[axis] >= mesh::PATCH ? 1 : 0;
      inwards[axis] = 0;
      times[axis] = 0;
      if (step[axis] != 0 && to.is_outside(direction_along(axis, step[axis]))) {
        const int depth = step[axis] < 0 ? -at[axis] : at[axis] - mesh::PATCH + 1;
        if (is_wall(p.clouds.walls, axis, step[axis])) {
          at[axis] = step[axis] < 0 ? depth - 1 : mesh::PATCH - depth;
        } else {
          at[axis] = step[axis] < 0 ? 0 : mesh::PATCH - 1;
          inwards[axis] = -step[axis];
          times[axis] = (u64)depth;
        }
        step[axis] = 0;
      }
      at[axis] -= mesh::PATCH * step[axis];
    }
    const int slot = slot_of(p, to, direction(step), wide);
    if (slot < 0) continue;
    u64* sums = (wide ? p.wide : p.sums) + (i64)slot * mesh::CELLS;
    // at open faces: 1 + depth times the mass in the last cell, minus depth times the mass in the cell before it
    for (int corner = 0; corner < 8; ++corner) {
      u64 part = mass;
      int cell[3];
      for (int axis = 0; axis < 3; ++axis) {
        const bool second = corner >> axis & 1;
        cell[axis] = at[axis] + (second ? inwards[axis] : 0);
        part = part * (second ? (u64)0 - times[axis] : (u64)1 + times[axis]);
      }
      if (part != 0) launch::atomic_add(sums + cell[0] + mesh::PATCH * (cell[1] + mesh::PATCH * cell[2]), part);
    }
  }
}

RS_FN void add_particle(const args::DepositParameters& p, const BoundaryZone& zone, const PageView& from, int row, i64 n, u64* own, u64* coarser) {
  u64 offset[3];
  int step[3], cell[3], patch[3], finer = p.finer;
  predict_position(p, from, n, p.dt, p.most, offset, step);
  const int* index = p.from.tables.index + 4 * (i64)row;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    cell[axis] = mesh::PATCH * step[axis] + (int)(offset[axis] >> 61);
    patch[axis] = (index[axis] & ((1 << finer) - 1)) + step[axis];
  }
  const u64 whole = p.quanta_per_mass == 0.0 ? (u64)1 : p.from.masses ? cloud::quanta_of<REAL>(from.number(MASS, n), p.quanta_per_mass) : p.one;
  const bool inner = is_inner(zone, cell);
  const u64 deep = p.only_zone ? deep_part(p, zone, from, n, whole) : 0;
  const u64 mass = inner ? whole : whole - deep;
  if (mass == 0) return;
  if (inner && deep != 0) add_any(p.clouds.width, own, offset, patch, finer, deep, false);
  if (p.clouds.width < 2 && (inner || (finer > 0 && p.clouds.zone >= 2))) {
    // wide clouds are centred where the narrow one is
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) offset[axis] = cloud::centre(offset[axis], 61);
  }
  if (finer > 0 && p.clouds.zone >= 2) {
    // a cloud as wide as the cells of the deposit
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      offset[axis] = offset[axis] >> finer | (u64)(i64)patch[axis] << (64 - finer);
      patch[axis] >>= finer;
    }
    add_any(wide_cloud(p.clouds.width), own, offset, patch, 0, mass);
    return;
  }
  u64* block = p.beside || (inner && finer == 0) ? coarser : own;
  if (p.beside && inner) return;
  if (inner) {
    // a cloud as wide as coarse cells
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      const int side = index[axis] & 1;
      offset[axis] = motion::in_parent(offset[axis], (unsigned)((side + step[axis]) & 1));
      patch[axis] = (finer > 0 ? patch[axis] : side + step[axis]) >> 1;
    }
    finer = finer > 0 ? finer - 1 : 0;
  }
  add_any(inner ? wide_cloud(p.clouds.width) : p.clouds.width, block, offset, patch, finer, mass);
}

// Counts the set bits below bit `n`.
RS_FN int rank_of(const unsigned* bits, int n) {
  int count = 0;
  for (int w = 0; 32 * w < n; ++w) {
    unsigned x = n - 32 * w < 32 ? bits[w] & ((1u << (n - 32 * w)) - 1u) : bits[w];
    x = x - (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    count += (int)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
  }
  return count;
}

// Deposits a chunk of a list, by one block.
RS_FN void deposit(const args::DepositParameters& p, int number) {
  // fine sums, then coarse sums for clouds as wide as coarse cells
  u64 *own = launch::shared<u64>(), *coarser = own + BLOCK;
  const Chunk chunk = particles::chunk(p.from, number);
  const args::HierarchyTables& tables = p.from.tables;
  SHARED BoundaryZone zone;
  find_zone(&zone, tables, chunk.row, p.clouds.zone);
  EACH(n, p.wide != nullptr ? 2 * BLOCK : BLOCK) own[n] = 0;
  launch::barrier();
  if (p.only_zone && zone.inner == 0) return;
  const bool wide = p.beside || (p.wide != nullptr && p.finer == 0 && zone.inner != 0);
  if (p.beside && zone.outer == 0 && p.clouds.zone > 0) return;
  const PageView from = page_view(p.from.page_array);
  EACH(k, chunk.count) add_particle(p, zone, from, chunk.row, chunk.first + k, own, coarser);
  launch::barrier();
  if (!p.beside) scatter(p, own, targets(p, chunk.row, p.finer, false), false);
  if (wide) scatter(p, coarser, targets(p, chunk.row, p.beside ? 0 : 1, true), true);
}

}  // namespace particles

KERNEL_BOUNDS(particles_deposit, particles::args::DepositListsParameters, 256, 6) {
  using namespace particles;
  int list = 0;
  while (launch::block() >= p.ends[list]) ++list;
  deposit(p.lists[list], launch::block() - (list == 0 ? 0 : p.ends[list - 1]));
}

KERNEL(particles_density, particles::args::DensityParameters<field::REAL>) {
  using namespace particles;
  const int row = p.rows[launch::block()];
  u64* sums = p.sums + (i64)p.slots[row] * mesh::CELLS;
  EACH(cell, mesh::CELLS) {
    u64 sum = sums[cell];
    if (p.wide != nullptr) {
      const int at[3] = {cell % 8, cell / 8 % 8, cell / 64};
      int from = 0, eighth = 0;
      for (int axis = 2; axis >= 0; --axis) {
        from = mesh::PATCH * from + mesh::PATCH / 2 * side_of(p.tables, row, axis) + at[axis] / 2;
        eighth = 2 * eighth + (at[axis] & 1);
      }
      const u64 mass = p.wide[(i64)p.slots[p.tables.parent[row]] * mesh::CELLS + from];
      sum += (u64)((i64)mass >> 3) + ((u64)eighth < (mass & 7) ? 1 : 0);
      sums[cell] = sum;
    }
    if (p.density != nullptr) ((REAL*)p.density)[(i64)row * mesh::CELLS + cell] = (REAL)((double)(i64)sum * p.per_unit);
  }
}

// Longest record of a slot, in words.
namespace particles {
constexpr int BITS_OF_RECORD = 8, RECORD = BITS_OF_RECORD + mesh::CELLS;
}

// Packs the sums for other ranks: for each slot with any mass, one bit per cell and the non-zero sums.
KERNEL(particles_pack_sums, particles::args::PackSumsParameters) {
  using namespace particles;
  SHARED unsigned cells[16];
  SHARED u64 place;
  const int slot = launch::block();
  const u64* sums = slot < p.count ? p.sums + (i64)slot * mesh::CELLS : p.wide + (i64)(slot - p.count) * mesh::CELLS;
  EACH(w, 16) cells[w] = 0;
  launch::barrier();
  EACH(cell, mesh::CELLS) if (sums[cell] != 0) launch::atomic_or(cells + cell / 32, 1u << cell % 32);
  launch::barrier();
  const int all = rank_of(cells, mesh::CELLS);
  if (all == 0) return;
  EACH(n, 1) {
    const unsigned receiver = slot < p.count ? p.receivers[slot] : p.wide_receivers[slot - p.count];
    const u64 before = launch::atomic_add(p.report + receiver, ((u64)(BITS_OF_RECORD + all) << 32) + 1);
    p.report[p.ranks + p.firsts[receiver] + (before & 0xffffffffu)] = (before >> 32 << 32) + (u64)slot;
    place = p.firsts[receiver] * RECORD + (before >> 32);
  }
  launch::barrier();
  u64* out = p.out + place;
  EACH(w, BITS_OF_RECORD) out[w] = (u64)cells[2 * w] | (u64)cells[2 * w + 1] << 32;
  EACH(cell, mesh::CELLS) if (sums[cell] != 0) out[BITS_OF_RECORD + rank_of(cells, cell)] = sums[cell];
}

// Adds packed sums of other ranks, one record per block; slots of coarse sums follow the others.
KERNEL(particles_merge_sums, particles::args::MergeSumsParameters) {
  using namespace particles;
  SHARED unsigned cells[16];
  const u64* record = p.words + p.records[2 * (i64)launch::block()];
  const i64 slot = (i64)p.records[2 * (i64)launch::block() + 1];
  u64* sums = slot < p.count ? p.sums + slot * mesh::CELLS : p.wide + (slot - p.count) * mesh::CELLS;
  EACH(w, 16) cells[w] = (unsigned)(record[w / 2] >> 32 * (w & 1));
  launch::barrier();
  EACH(cell, mesh::CELLS)
    if (cells[cell / 32] >> cell % 32 & 1) launch::atomic_add(sums + cell, record[BITS_OF_RECORD + rank_of(cells, cell)]);
}
