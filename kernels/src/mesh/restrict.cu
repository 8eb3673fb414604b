// Averages fine values onto coarse ones: the twin of restrict.rs. One block per octet.

namespace mesh {

// Returns the mean of the fine values of component c, starting at `source`, that one coarse value represents.
RS_FN REAL mean_at(const REAL* source, int c) {
  if constexpr (CENTRING == IN_CELLS) {
    return mean_of_eight(source);
  } else if constexpr (CENTRING == ON_FACES) {
    const int b = step_along(c, (c + 1) % 3), e = step_along(c, (c + 2) % 3);
    return ::nestar_kernels::mesh::fluxes::mean4<REAL>(rs::arr<REAL, 4>{{source[0], source[b], source[e], source[b + e]}});
  } else {
    return ::nestar_kernels::mesh::means::mean2<REAL>(source[0], source[step_along(c, c % 3)]);
  }
}

// Stores in `mean` the means of the values that `convert` makes of the states of eight fine cells, starting at `source`.
template<class Convert> RS_FN void mean_of(const REAL* source, REAL* mean, Convert convert) {
  REAL eight[8 * COMPONENTS];
  for (int side = 0; side < 8; ++side) {
    REAL* w = eight + side * COMPONENTS;
    for (int c = 0; c < COMPONENTS; ++c) w[c] = source[c * CELLS + child_offset(side)];
    convert(w);
  }
  for (int c = 0; c < COMPONENTS; ++c) {
    rs::arr<REAL, 8> values;
    for (int side = 0; side < 8; ++side) values[side] = eight[side * COMPONENTS + c];
    mean[c] = ::nestar_kernels::mesh::means::mean8<REAL>(values);
  }
}

struct ToPrimitive {
  RS_MEMBER void operator()(REAL* u) const { field::to_primitive(u); }
};

struct ToRemainder {
  RS_MEMBER void operator()(REAL* u) const { field::to_remainder(u); }
};

// Repairs an average of eight fine cells, starting at `source`, with the average of their primitive variables.
RS_NOINLINE void repair_average(const REAL* source, REAL* u) {
  REAL mean[COMPONENTS];
  mean_of(source, mean, ToPrimitive());
  field::repair(u, mean);
}

}  // namespace mesh

KERNEL(mesh_restrict, mesh::parameters::RestrictParameters<mesh::REAL>) {
  using namespace mesh;
  const int first = p.rows[8 * launch::block()] & ~7;
  const int parent = p.parent[first];
  REAL* out = row_of(p.coarse, parent);
  for (int group = 0; group < GROUPS; ++group) {
    const int nx = PATCH + staggered(group, 0), ny = PATCH + staggered(group, 1);
    EACH(n, VALUES) {
      const int x = n % nx, y = n / nx % ny, z = n / (nx * ny);
      // the plane between two children belongs to the upper one
      const int upper[3] = {x >= PATCH / 2, y >= PATCH / 2, z >= PATCH / 2};
      const REAL* source = row_of(p.fine, first + upper[0] + 2 * upper[1] + 4 * upper[2]) +
                           value_at(group, 2 * x - PATCH * upper[0], 2 * y - PATCH * upper[1], 2 * z - PATCH * upper[2]);
      REAL u[COMPONENTS];
      EACH_COMPONENT(c) if (c % GROUPS == group) u[c] = mean_at(source + c * VALUES, c);
      if constexpr (CENTRING == IN_CELLS) {
        if constexpr (field::HAS_REMAINDER) {
          REAL kept[COMPONENTS];
          mean_of(source, kept, ToRemainder());
          keep_remainder(u, kept);
        }
        if (!field::physical(u)) {
          repair_average(source, u);
          launch::atomic_add(&p.repaired->averages, rs::u64(1));
        }
        if constexpr (field::HAS_DEPENDENTS) field::reconcile(u);
      }
      EACH_COMPONENT(c) if (c % GROUPS == group) out[c * VALUES + n] = u[c];
    }
  }
  if (launch::thread() == 0) p.stale[parent] = 1;
}

namespace mesh {

typedef parameters::ShareParameters<REAL> ShareParameters;

// Finds the row that owns the values on the given sides of a patch (-1 lower, 1 upper, 0 between), and the step to it.
RS_FN int owner_at(const ShareParameters& p, int row, const int* sides, int* step) {
  const int* around = p.neighbours + (rs::i64)row * AROUND;
  int owner = row;
  unsigned least = ~0u;
  for (int bits = 0; bits < 8; ++bits) {
    const int to[3] = {sides[0] * (bits & 1), sides[1] * (bits >> 1 & 1), sides[2] * (bits >> 2)};
    const int d = SELF + to[0] + 3 * to[1] + 9 * to[2];
    if (around[d] < 0) continue;
    const unsigned rank = ::nestar_kernels::mesh::shared_values::owner_priority((unsigned)d, p.first_child[around[d]] != LEAF);
    if (rank >= least) continue;
    least = rank;
    owner = around[d];
    for (int a = 0; a < 3; ++a) step[a] = to[a];
  }
  return owner;
}

// Copies the values of component c on the given sides from the row at `step`.
RS_FN void copy_sides(REAL* own, const REAL* theirs, int c, const int* sides, const int* step) {
  int first[3], length[3];
  for (int a = 0; a < 3; ++a) {
    if (sides[a] != 0 && !staggered(c, a)) return;
    first[a] = sides[a] > 0 ? PATCH : sides[a] < 0 ? 0 : staggered(c, a);
    length[a] = sides[a] != 0 ? 1 : PATCH - first[a];
  }
  EACH(n, length[0] * length[1] * length[2]) {
    int at[3] = {first[0] + n % length[0], first[1] + n / length[0] % length[1], first[2] + n / (length[0] * length[1])};
    const int to = c * VALUES + value_at(c, at[0], at[1], at[2]);
    for (int a = 0; a < 3; ++a)
      if (step[a] != 0) at[a] = PATCH - at[a];
    own[to] = theirs[c * VALUES + value_at(c, at[0], at[1], at[2])];
  }
}

}  // namespace mesh

// Copies shared values from their owners: the twin of sync_shared_values in shared_values.rs. One block per patch.
KERNEL(mesh_sync_shared, mesh::ShareParameters) {
  using namespace mesh;
  const int row = p.rows[launch::block()];
  for (int d = 0; d < 27; ++d) {
    const int sides[3] = {d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1};
    int step[3];
    const int owner = owner_at(p, row, sides, step);
    if (step[0] == 0 && step[1] == 0 && step[2] == 0) continue;
    EACH_COMPONENT(c) copy_sides(row_of(p.level, row), row_of(p.level, owner), c, sides, step);
  }
  if (launch::thread() == 0) p.stale[row] = 1;
}
