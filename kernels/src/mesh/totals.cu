// Conserved totals in the order of the engine's totals: eight lanes within a patch, pairwise among the patches of a level.

namespace mesh {

// Pairwise sum of component c of the patches from..to; not recursive, because a thread's stack is small.
RS_FN double pairwise(const double* sums, int c, int from, int to) {
  int begin[32], end[32], depth = 0;
  double below[32];
  bool second[32];
  begin[0] = from;
  end[0] = to;
  for (;;) {
    for (; end[depth] - begin[depth] > 1; ++depth) {
      second[depth] = false;
      begin[depth + 1] = begin[depth];
      end[depth + 1] = begin[depth] + (end[depth] - begin[depth]) / 2;
    }
    double sum = end[depth] > begin[depth] ? sums[(rs::i64)begin[depth] * COMPONENTS + c] : 0.0;
    for (; depth > 0 && second[depth - 1]; --depth) sum = below[depth - 1] + sum;
    if (depth == 0) return sum;
    below[depth - 1] = sum;
    second[depth - 1] = true;
    begin[depth] = end[depth];
    end[depth] = end[depth - 1];
  }
}

}  // namespace mesh

// Sums the conserved quantities of every leaf patch. One block per patch.
KERNEL(mesh_sum_patches, mesh::parameters::TotalsParameters<mesh::REAL>) {
  using namespace mesh;
  SHARED double lanes[8 * COMPONENTS];
  const int n = launch::block(), row = p.rows[n];
  const bool leaf = p.first_child[row] == LEAF;
  const REAL* values = row_of(p.level, row);
  EACH(item, 8 * COMPONENTS) {
    double sum = 0.0;
    // rows of other shapes have no totals
    for (int line = 0; line < CELLS / 8 && leaf && SIDE == PATCH; ++line) {
      const int cell = 8 * line + (item & 7);
      sum += (double)values[(item >> 3) * CELLS + cell];
      if constexpr (field::HAS_REMAINDER) {
        REAL u[COMPONENTS];
        EACH_COMPONENT(c) u[c] = values[c * CELLS + cell];
        field::to_remainder(u);
        sum += (double)u[item >> 3];
      }
    }
    lanes[item] = sum;
  }
  launch::barrier();
  EACH(c, COMPONENTS) {
    rs::arr<double, 8> of_cells;
    for (int lane = 0; lane < 8; ++lane) of_cells[lane] = lanes[8 * c + lane];
    p.sums[(rs::i64)n * COMPONENTS + c] = leaf ? ::nestar_kernels::mesh::order::sum_of_lanes(of_cells) : 0.0;
  }
  launch::barrier();
}

// Sums the patches of every part: a node is halved as often as the host says, and each half is a part.
KERNEL(mesh_sum_parts, mesh::parameters::TotalsParameters<mesh::REAL>) {
  using namespace mesh;
  const int part = launch::block();
  int node = p.count - 1;
  while (p.nodes[node][3] > part) --node;
  EACH(c, COMPONENTS) {
    int from = p.nodes[node][0], to = p.nodes[node][1];
    for (int d = p.nodes[node][2] - 1; d >= 0; --d) {
      const int middle = from + (to - from) / 2;
      if ((part - p.nodes[node][3]) >> d & 1) from = middle;
      else to = middle;
    }
    p.parts[(rs::i64)part * COMPONENTS + c] = pairwise(p.sums, c, from, to);
  }
}
