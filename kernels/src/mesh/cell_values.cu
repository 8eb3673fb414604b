// Reads and writes all components of single cells, `[cell][component]`.

namespace mesh {

typedef ::nestar_kernels::mesh::parameters::CellValuesParameters<field::REAL> CellValuesParameters;

// First value of cell `n` of the list.
RS_FN field::REAL* cell_of(const CellValuesParameters& p, int n) {
  return p.level + (rs::i64)p.cells[2 * n] * (field::COMPONENTS * CELLS) + p.cells[2 * n + 1];
}

}  // namespace mesh

#define EACH_CELL(n, p) \
  for (int n = launch::block() * launch::threads() + launch::thread(); n < (p).count; n += launch::blocks() * launch::threads())

KERNEL(mesh_read_cells, mesh::CellValuesParameters) {
  EACH_CELL(n, p) {
    const field::REAL* from = mesh::cell_of(p, n);
    for (int c = 0; c < field::COMPONENTS; ++c) p.values[n * field::COMPONENTS + c] = from[c * mesh::CELLS];
  }
}

KERNEL(mesh_write_cells, mesh::CellValuesParameters) {
  EACH_CELL(n, p) {
    field::REAL* to = mesh::cell_of(p, n);
    for (int c = 0; c < field::COMPONENTS; ++c) to[c * mesh::CELLS] = p.values[n * field::COMPONENTS + c];
    p.stale[p.cells[2 * n]] = 1;
  }
}
