// The mass of particles in the cells of a level: the twin of the deposit of the species. Follows cells.cuh.

namespace particles {

// Adds the cloud of a particle to a block about a patch; the place is in a patch so many levels finer, `patch` patches from the block's first.
template<int WIDTH> RS_FN void add_cloud(u64* block, const u64* place, const int* patch, int finer, u64 mass) {
  int at[3][WIDTH];
  unsigned share[3];
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const int first = mesh::PATCH * patch[axis] + cloud::lowest(place[axis], WIDTH);
    share[axis] = cloud::share(place[axis], WIDTH);
    RS_UNROLL for (int k = 0; k < WIDTH; ++k) at[axis][k] = ((first + k) >> finer) + AROUND;
  }
  const auto along_z = cloud::parts(mass, share[2], WIDTH);
  RS_UNROLL for (int k = 0; k < WIDTH; ++k) {
    const auto along_y = cloud::parts(along_z.d[k], share[1], WIDTH);
    RS_UNROLL for (int j = 0; j < WIDTH; ++j) {
      const auto along_x = cloud::parts(along_y.d[j], share[0], WIDTH);
      RS_UNROLL for (int i = 0; i < WIDTH; ++i) {
        if (along_x.d[i] != 0) launch::add_shared(block + at[0][i] + SIDE * (at[1][j] + SIDE * at[2][k]), along_x.d[i]);
      }
    }
  }
}

RS_FN void add_any(int width, u64* block, const u64* place, const int* patch, int finer, u64 mass) {
  if (width == 2) add_cloud<2>(block, place, patch, finer, mass);
  else if (width == 1) add_cloud<1>(block, place, patch, finer, mass);
  else add_cloud<3>(block, place, patch, finer, mass);
}

// Where a particle is at the time of the sums: the place, and how many patches away.
RS_FN void seen(const given::Deposit& p, const Columns& from, i64 n, u64* place, int* step) {
  const REAL dt = (REAL)p.dt;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    place[axis] = whole(from.place(axis, n));
    step[axis] = 0;
    if (dt == REAL(0)) continue;
    const REAL v = from.number(VELOCITY + axis, n), a = from.number(ACCELERATION + axis, n);
    double by = (double)motion::ahead<REAL>(v, a, dt, (REAL)p.per_width[axis]);
    by = by < -p.most ? -p.most : by > p.most ? p.most : by;
    const int patches = (int)by;
    const auto to = motion::moved(place[axis], by - (double)patches, BITS);
    place[axis] = to._0;
    step[axis] = patches + to._1;
  }
}

// Adds a block about a patch to the sums of the patches around it; to those in cells that have children, of the coarser level.
RS_FN void scatter(const given::Deposit& p, const u64* block, int centre, bool wide) {
  const given::Tables& tables = p.from.tables;
  const int* near = around(tables, centre);
  EACH(n, BLOCK) {
    const u64 mass = block[n];
    if (mass == 0) continue;
    int at[3] = {n % SIDE - AROUND, n / SIDE % SIDE - AROUND, n / (SIDE * SIDE) - AROUND}, step[3];
    for (int axis = 0; axis < 3; ++axis) {
      step[axis] = at[axis] < 0 ? -1 : at[axis] >= mesh::PATCH ? 1 : 0;
      if (step[axis] != 0 && near[direction_along(axis, step[axis])] == mesh::OUTSIDE) {
        // as a mirror would
        at[axis] = step[axis] < 0 ? -1 - at[axis] : 2 * mesh::PATCH - 1 - at[axis];
        step[axis] = 0;
      }
      at[axis] -= mesh::PATCH * step[axis];
    }
    const int row = near[direction(step)];
    if (row < 0 || (wide && is_leaf(tables, row))) continue;
    u64* sums = (wide ? p.wide : p.sums) + (i64)p.slots[row] * mesh::CELLS;
    launch::atomic_add(sums + at[0] + mesh::PATCH * (at[1] + mesh::PATCH * at[2]), mass);
  }
}

RS_FN void add_particle(const given::Deposit& p, const Zone& zone, const Columns& from, int row, i64 n, u64* own, u64* coarser) {
  u64 place[3];
  int step[3], cell[3], patch[3], finer = p.finer;
  seen(p, from, n, place, step);
  const int* index = p.from.tables.index + 4 * (i64)row;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    cell[axis] = mesh::PATCH * step[axis] + (int)(place[axis] >> 61);
    patch[axis] = (index[axis] & ((1 << finer) - 1)) + step[axis];
  }
  const u64 mass = p.scale == 0.0 ? (u64)1 : p.from.masses ? cloud::units_of<REAL>(from.number(MASS, n), p.scale) : p.one;
  const bool inner = is_inner(zone, cell);
  u64* block = p.beside || (inner && finer == 0) ? coarser : own;
  if (p.beside && inner) return;
  if (inner) {
    // as wide a cloud as the coarser level's
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      const int side = index[axis] & 1;
      place[axis] = motion::in_parent(place[axis], (unsigned)((side + step[axis]) & 1));
      patch[axis] = (finer > 0 ? patch[axis] : side + step[axis]) >> 1;
    }
    finer = finer > 0 ? finer - 1 : 0;
  }
  add_any(p.clouds.width, block, place, patch, finer, mass);
}

}  // namespace particles

KERNEL_BOUNDS(particles_deposit, particles::given::Deposit, 256, 6) {
  using namespace particles;
  // sums about the patch; behind them those in cells of the coarser level, where clouds may be as wide as these
  u64 *own = launch::shared<u64>(), *coarser = own + BLOCK;
  const Chunk chunk = particles::chunk(p.from);
  const given::Tables& tables = p.from.tables;
  SHARED Zone zone;
  find_zone(&zone, tables, chunk.row, p.clouds.zone);
  EACH(n, p.wide != nullptr ? 2 * BLOCK : BLOCK) own[n] = 0;
  launch::barrier();
  const bool wide = p.beside || (p.finer == 0 && zone.inner != 0);
  if (p.beside && zone.outer == 0 && p.clouds.zone > 0) return;
  const Columns from = columns(p.from.stack);
  EACH(k, chunk.count) add_particle(p, zone, from, chunk.row, chunk.first + k, own, coarser);
  launch::barrier();
  int centre = chunk.row;
  for (int up = 0; up < p.finer; ++up) centre = tables.parent[centre];
  if (!p.beside) scatter(p, own, centre, false);
  if (wide) scatter(p, coarser, p.beside ? chunk.row : tables.parent[chunk.row], true);
}

KERNEL(particles_finish, particles::given::Finish<field::REAL>) {
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
      sum += mass / 8 + ((u64)eighth < mass % 8 ? 1 : 0);
      sums[cell] = sum;
    }
    if (p.density != nullptr) ((REAL*)p.density)[(i64)row * mesh::CELLS + cell] = (REAL)((double)sum * p.per_unit);
  }
}
