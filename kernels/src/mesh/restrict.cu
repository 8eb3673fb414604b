// Averages of fine cells onto coarse ones: the twin of restrict.rs. One block an octet.

KERNEL(mesh_restrict, mesh::parameters::Restrict<mesh::REAL>) {
  using namespace mesh;
  const int first = p.rows[8 * launch::block()] & ~7;
  const int parent = p.parent[first];
  REAL* out = row_of(p.coarse, parent);
  EACH(cell, CELLS) {
    const int x = cell & 7, y = cell >> 3 & 7, z = cell >> 6;
    const int child = (x >> 2) + 2 * (y >> 2) + 4 * (z >> 2);
    const REAL* source = row_of(p.fine, first + child) + cell_of(2 * x, 2 * y, 2 * z);
    REAL u[COMPONENTS];
    EACH_COMPONENT(c) {
      rs::arr<REAL, 8> eight;
      RS_UNROLL for (int s = 0; s < 8; ++s)
        eight[s] = source[c * CELLS + (s & 1) + PATCH * (s >> 1 & 1) + PATCH * PATCH * (s >> 2)];
      u[c] = ::nestar_kernels::mesh::restrict::mean8<REAL>(eight);
    }
    if (field::physical(u)) {
      EACH_COMPONENT(c) out[c * CELLS + cell] = u[c];
    }
  }
  if (launch::thread() == 0) p.stale[parent] = 1;
}
