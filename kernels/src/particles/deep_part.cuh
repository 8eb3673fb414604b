// Particles in the boundary zone at other times, as in the host code. Include after boundary_zone.cuh.

namespace particles {

// Predicts a particle a time `ahead` of its own: its offset, and the number of patches it has moved, at most `most`.
template<typename Parameters> RS_FN void predict_position(const Parameters& p, const PageView& from, i64 n, double ahead, double most, u64* offset, int* step) {
  const REAL dt = (REAL)ahead;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    offset[axis] = widen(from.offset(axis, n));
    step[axis] = 0;
    if (dt == REAL(0)) continue;
    const REAL v = from.number(VELOCITY + axis, n), a = from.number(ACCELERATION + axis, n);
    double by = (double)motion::displacement<REAL>(v, a, dt, (REAL)p.per_width[axis]);
    by = by < -most ? -most : by > most ? most : by;
    const int patches = (int)by;
    const auto to = motion::moved(offset[axis], by - (double)patches, BITS);
    offset[axis] = to._0;
    step[axis] = patches + to._1;
  }
}

// Returns the part of a mass that is outside the boundary zone, by the states of the next coarser level.
template<typename Parameters> RS_FN u64 deep_part(const Parameters& p, const BoundaryZone& zone, const PageView& from, i64 n, u64 mass) {
  const u64 newer = cloud::split(mass, p.newer);
  u64 part = 0;
  for (int state = 0; state < 2; ++state) {
    u64 offset[3];
    int step[3], cell[3];
    predict_position(p, from, n, p.zone_times[state], 2.0 * p.most, offset, step);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) cell[axis] = mesh::PATCH * step[axis] + (int)(offset[axis] >> 61);
    if (!is_inner(zone, cell)) part += state == 0 ? mass - newer : newer;
  }
  return part;
}

}  // namespace particles
