// Gathers fields to particles with cloud weights, as in the host code. Include after boundary_zone.cuh.

namespace particles {

// Gathers a vector from a patch with G ghost layers; `second` selects the second vector field where there are
// two.
template<int G, int WIDTH> RS_FN void gather_cloud(const REAL* block, const u64* offset, const int* step, bool second, REAL* sums) {
  constexpr int N = mesh::PATCH + 2 * G, VALUES = N * N * N;
  const REAL* values = block + (second && field::COMPONENTS > 3 ? 3 * VALUES : 0);
  rs::arr<REAL, 3> along[3];
  int start = 0;
  RS_UNROLL for (int axis = 2; axis >= 0; --axis) {
    int cell = mesh::PATCH * step[axis] + cloud::first_cell(offset[axis], WIDTH) + G;
    cell = cell < 0 ? 0 : cell > N - WIDTH ? N - WIDTH : cell;
    start = N * start + cell;
    along[axis] = cloud::weights<REAL>(cloud::share(offset[axis], WIDTH), WIDTH);
  }
  RS_UNROLL for (int component = 0; component < 3; ++component) {
    REAL sum = REAL(0);
    RS_UNROLL for (int k = 0; k < WIDTH; ++k) {
      REAL plane = REAL(0);
      RS_UNROLL for (int j = 0; j < WIDTH; ++j) {
        REAL row = REAL(0);
        RS_UNROLL for (int i = 0; i < WIDTH; ++i)
          row = row + along[0].d[i] * values[component * VALUES + start + i + N * (j + N * k)];
        plane = plane + along[1].d[j] * row;
      }
      sum = sum + along[2].d[k] * plane;
    }
    sums[component] = sum;
  }
}

// Extrapolates fields of a patch linearly beyond the open faces of the domain.
template<int G> RS_FN void extrapolate(REAL* block, const int* near, unsigned walls) {
  constexpr int N = mesh::PATCH + 2 * G, VALUES = N * N * N, PLANE = N * N;
  for (int axis = 0; axis < 3; ++axis) {
    const int stride = axis == 0 ? 1 : axis == 1 ? N : PLANE;
    for (int step = -1; step < 2; step += 2) {
      if (!is_beyond(near, axis, step) || is_wall(walls, axis, step)) continue;
      EACH(n, field::COMPONENTS * PLANE) {
        const int i = n % N, j = n / N % N, c = n / PLANE;
        const int start = axis == 0 ? N * (i + N * j) : axis == 1 ? i + PLANE * j : i + N * j;
        REAL* line = block + c * VALUES + start + (step < 0 ? G : G + mesh::PATCH - 1) * stride;
        const REAL last = line[0], slope = last - line[-step * stride];
        RS_UNROLL for (int depth = 1; depth <= G; ++depth) line[depth * step * stride] = last + (REAL)depth * slope;
      }
      launch::barrier();
    }
  }
}

template<int G> RS_FN void gather_any(int width, const REAL* block, const u64* offset, const int* step, bool second, REAL* sums) {
  if (width == 2) gather_cloud<G, 2>(block, offset, step, second, sums);
  else if (width == 1) gather_cloud<G, 1>(block, offset, step, second, sums);
  else gather_cloud<G, 3>(block, offset, step, second, sums);
}

}  // namespace particles
