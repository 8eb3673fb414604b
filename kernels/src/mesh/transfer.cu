// Rows into and out of contiguous memory. One block a patch.

namespace mesh {

// The twin of `TransferParameters`.
struct Transfer {
  REAL* level;
  REAL* packed;          // [group][count][row][512]; the last group may have fewer rows
  const int* rows;       // one a block
  unsigned char* stale;  // [row]
  int first;             // first component
  int count;             // components
  int group;             // rows of a group
  int total;             // rows
};

// Where a block's row stands in packed memory: its first component, and how far it is to the next.
struct PackedRow {
  REAL* values;
  rs::i64 stride;
};

RS_FN PackedRow packed_row(const Transfer& p) {
  const int place = launch::block() % p.group, begin = launch::block() - place;
  const int left = p.total - begin, width = left < p.group ? left : p.group;
  return {p.packed + ((rs::i64)begin * p.count + place) * CELLS, (rs::i64)width * CELLS};
}

}  // namespace mesh

KERNEL(mesh_pack, mesh::Transfer) {
  using namespace mesh;
  const REAL* from = row_of(p.level, p.rows[launch::block()]) + p.first * CELLS;
  const PackedRow to = packed_row(p);
  EACH(i, p.count * CELLS) to.values[i / CELLS * to.stride + i % CELLS] = from[i];
}

KERNEL(mesh_unpack, mesh::Transfer) {
  using namespace mesh;
  const int row = p.rows[launch::block()];
  const PackedRow from = packed_row(p);
  REAL* to = row_of(p.level, row) + p.first * CELLS;
  EACH(i, p.count * CELLS) to[i] = from.values[i / CELLS * from.stride + i % CELLS];
  if (launch::thread() == 0) p.stale[row] = 1;
}
