// Records circulations along the edges of a patch: the twin of CirculationRegisters::record. Follows view.cuh.

namespace mesh {

namespace circulations = ::nestar_kernels::mesh::circulations;
typedef parameters::CirculationRegisterView<REAL> CirculationRegisterView;

// Values of a component on the edges of a patch with 8 or 4 cells along an axis, and on those of its surface.
constexpr int EDGES = PATCH * 81, COARSE_EDGES = PATCH / 2 * 25;
constexpr int SURFACE = 4 * PATCH * PATCH, FINE_SURFACE = SURFACE / 4;

// Position of edge n of component c in a block with N cells along each axis.
template<int N> RS_FN rs::arr<int, 3> edge_place(int c, int n) {
  const int x = N + (c % 3 != 0), y = N + (c % 3 != 1);
  return rs::arr<int, 3>{{n % x, n / x % y, n / (x * y)}};
}

// Index of an edge among those of component c of a patch.
RS_FN int edge_index(int c, const rs::arr<int, 3>& at) {
  return at[0] + (PATCH + (c % 3 != 0)) * (at[1] + (PATCH + (c % 3 != 1)) * at[2]);
}

// Mean of the two edges of component c of a fine patch on the coarse edge at `at`.
RS_FN REAL coarse_edge(const REAL* edges, int c, const rs::arr<int, 3>& at) {
  rs::arr<int, 3> lower{{2 * at[0], 2 * at[1], 2 * at[2]}}, upper = lower;
  upper[c % 3] += 1;
  return ::nestar_kernels::mesh::means::mean2<REAL>(edges[edge_index(c, lower)], edges[edge_index(c, upper)]);
}

// Stores the circulations of the tentative step along the edges of `row` in its registers, per length and time. `edges` holds COUNT
// components, each with the 648 edges of a patch, `pitch` values apart. All threads must see them; values inside the patch are not read.
template<int COUNT = COMPONENTS>
RS_FN void store_circulations(const CirculationRegisterView& to, int row, const REAL* edges, int pitch) {
  const int coarse = to.coarse_slot ? to.coarse_slot[row] : -1;
  const int fine = to.fine_slot ? to.fine_slot[row] : -1;
  if (coarse >= 0) EACH(i, COUNT * EDGES) {
      const int c = i / EDGES, index = circulations::index_on_surface(PATCH, c, edge_place<PATCH>(c, i % EDGES));
      if (index >= 0) to.coarse_edges[(rs::i64)coarse * (COUNT * SURFACE) + index] = edges[c * pitch + i % EDGES];
    }
  if (fine >= 0) EACH(i, COUNT * COARSE_EDGES) {
      const int c = i / COARSE_EDGES;
      const rs::arr<int, 3> at = edge_place<PATCH / 2>(c, i % COARSE_EDGES);
      const int index = circulations::index_on_surface(PATCH / 2, c, at);
      if (index >= 0) to.attempt[(rs::i64)fine * (COUNT * FINE_SURFACE) + index] = coarse_edge(edges + c * pitch, c, at);
    }
}

}  // namespace mesh
