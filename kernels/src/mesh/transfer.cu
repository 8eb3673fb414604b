// Rows into and out of contiguous memory. One block a patch.

namespace mesh {

// The twin of `TransferParameters`.
struct Transfer {
  REAL* level;
  REAL* packed;          // [n][count][512]
  const int* rows;       // one a block
  unsigned char* stale;  // [row]
  int first;             // first component
  int count;             // components
};

}  // namespace mesh

KERNEL(mesh_pack, mesh::Transfer) {
  using namespace mesh;
  const REAL* from = row_of(p.level, p.rows[launch::block()]) + p.first * CELLS;
  REAL* to = p.packed + (rs::i64)launch::block() * (p.count * CELLS);
  EACH(i, p.count * CELLS) to[i] = from[i];
}

KERNEL(mesh_unpack, mesh::Transfer) {
  using namespace mesh;
  const int row = p.rows[launch::block()];
  const REAL* from = p.packed + (rs::i64)launch::block() * (p.count * CELLS);
  REAL* to = row_of(p.level, row) + p.first * CELLS;
  EACH(i, p.count * CELLS) to[i] = from[i];
  if (launch::thread() == 0) p.stale[row] = 1;
}
