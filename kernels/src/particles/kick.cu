// Gathers forces and applies the closing kick, as in the host code. Include after deep_part.cuh and gather.cuh.

namespace particles {

typedef ::nestar_kernels::particles::field_kernels::KickParameters<REAL> KickParameters;
// Ghost layers for particles inside the patch; predicted ones may be one cell outside.
constexpr int BESIDE = 1;

RS_FN void kick(const KickParameters& p, const PageView& of, i64 n, const REAL* v, const REAL* a) {
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const REAL kept = p.correct || p.add ? of.number(ACCELERATION + axis, n) : REAL(0);
    const REAL by = p.correct && !p.add ? a[axis] - kept : a[axis];
    of.number(VELOCITY + axis, n) = motion::kicked<REAL>(v[axis], by, (REAL)p.half);
    of.number(ACCELERATION + axis, n) = p.add ? kept + (REAL)p.sign * a[axis] : p.sign == 0.0 ? REAL(0) : a[axis];
  }
}

// Position of a particle at the time of a state of the coarser level.
struct PredictedPosition {
  u64 offset[3];
  int step[3];
};

RS_FN PredictedPosition predict(const KickParameters& p, const PageView& of, i64 n, const u64* offset, double time_offset) {
  PredictedPosition there{};
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const REAL by = of.number(VELOCITY + axis, n) * ((REAL)time_offset * (REAL)p.per_width[axis]);
    const auto to = motion::moved(offset[axis], (double)by, 64);
    there.offset[axis] = to._0;
    there.step[axis] = to._1;
  }
  return there;
}

// Returns whether the coarser level deposits the particle there with a cloud as wide as its cells.
RS_FN bool has_coarse_cloud(const KickParameters& p, const BoundaryZone& zone, int row, const PredictedPosition& there) {
  if (!p.parent || p.clouds.zone >= 2) return true;
  int cell[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int side = side_of(p.from.tables, row, axis);
    cell[axis] = (int)(there.offset[axis] >> 60) + 2 * mesh::PATCH * there.step[axis] - mesh::PATCH * side;
  }
  return is_inner(zone, cell);
}

// Kicks a particle by the states of the coarser level.
RS_FN void kick_from_coarser(const KickParameters& p, const BoundaryZone& zone, const REAL* block, int row, i64 n, const u64* offset, const REAL* v, bool second) {
  const PageView of = page_view(p.from.page_array);
  const bool late = p.state == 2;
  const PredictedPosition now = predict(p, of, n, offset, late ? p.time_offsets[1] : p.time_offsets[0]);
  REAL a[3];
  // as in the deposit, clouds in cells of a coarser level are at least two cells wide
  const bool snaps = p.parent && p.clouds.width < 2;
  PredictedPosition centre = now;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) centre.offset[axis] = snaps ? cloud::centre(now.offset[axis], 60) : now.offset[axis];
  gather_any<AROUND>(snaps ? 2 : p.clouds.width, block, centre.offset, centre.step, second, a);
  if (p.state == 1) {
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) of.number(ACCELERATION + axis, n) = a[axis];
    return;
  }
  if (late) {
    const bool before = has_coarse_cloud(p, zone, row, predict(p, of, n, offset, p.time_offsets[0])), after = has_coarse_cloud(p, zone, row, now);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      const REAL old = of.number(ACCELERATION + axis, n);
      a[axis] = before == after ? old + (REAL)p.weight * (a[axis] - old) : before ? old : a[axis];
    }
  }
  kick(p, of, n, v, a);
}

}  // namespace particles

KERNEL_BOUNDS(particles_kick, particles::KickParameters, 256, 4) {
  using namespace particles;
  const Chunk chunk = particles::chunk(p.from);
  const args::HierarchyTables& tables = p.from.tables;
  SHARED BoundaryZone zone;
  find_zone(&zone, tables, chunk.row, p.clouds.zone);
  launch::barrier();
  if (p.parent && !p.deep && zone.inner == 0) return;
  REAL* block = launch::shared<REAL>();
  const int centre = p.parent ? tables.parent[chunk.row] : chunk.row;
  if (p.state == 0) mesh::gather<BESIDE>(block, p.view, centre, mesh::Store<mesh::PATCH + 2 * BESIDE>());
  else mesh::gather<AROUND>(block, p.view, centre, mesh::Store<SIDE>());
  if (p.state == 0) extrapolate<BESIDE>(block, around(tables, centre), p.clouds.walls);
  else extrapolate<AROUND>(block, around(tables, centre), p.clouds.walls);
  const PageView of = page_view(p.from.page_array);
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    u64 offset[3];
    REAL v[3];
    int cell[3];
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) v[axis] = of.number(VELOCITY + axis, n);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      offset[axis] = widen(of.offset(axis, n));
      cell[axis] = (int)(offset[axis] >> 61);
    }
    const bool inner = is_inner(zone, cell);
    if (p.state == 0) {
      const u64 whole = (u64)1 << 32;
      const u64 deep = p.weighs && zone.inner != 0 ? deep_part(p, zone, of, n, whole) : inner ? 0 : whole;
      if (deep == 0) {
        // the coarser level alone accelerates the particle
        if (p.weighs) RS_UNROLL for (int axis = 0; axis < 3; ++axis) of.number(ACCELERATION + axis, n) = REAL(0);
        continue;
      }
      const int step[3] = {0, 0, 0};
      REAL a[3];
      gather_any<BESIDE>(p.clouds.width, block, offset, step, p.second, a);
      if (p.weighs) RS_UNROLL for (int axis = 0; axis < 3; ++axis) a[axis] *= (REAL)((double)deep / 4294967296.0);
      kick(p, of, n, v, a);
      continue;
    }
    if (p.parent && inner == p.deep) continue;
    if (p.parent) {
      RS_UNROLL for (int axis = 0; axis < 3; ++axis)
        offset[axis] = motion::in_parent(offset[axis], (unsigned)side_of(tables, chunk.row, axis));
    }
    kick_from_coarser(p, zone, block, chunk.row, n, offset, v, p.second);
  }
}
