// Fills new patches from the coarser level: the twin of prolong_patch in gather.rs. One block a patch.

KERNEL(mesh_prolong, mesh::parameters::Prolong<mesh::REAL>) {
  using namespace mesh;
  const int row = p.rows[launch::block()], parent = p.view.parent[row];
  const int* index = p.view.index + (rs::i64)row * 4;
  REAL* out = row_of(p.rows_of_level, row);
  EACH(item, CELLS / 8) {
    const int q[3] = {item & 3, item >> 2 & 3, item >> 4};
    int at[3];
    for (int a = 0; a < 3; ++a) at[a] = PATCH + PATCH / 2 * (index[a] & 1) + q[a];
    refine_cell(p.view, parent, at, [&](int side, const REAL* u) {
      const int x = 2 * q[0] + (side & 1), y = 2 * q[1] + (side >> 1 & 1), z = 2 * q[2] + (side >> 2);
      EACH_COMPONENT(c) out[c * CELLS + cell_of(x, y, z)] = u[c];
    });
  }
  if (launch::thread() == 0) p.stale[row] = 1;
}
