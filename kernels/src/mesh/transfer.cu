// Rows, and boxes of their cells, into and out of contiguous memory. One block a row or box.

namespace mesh {

using parameters::Piece;
typedef parameters::Transfer<REAL> Transfer;
typedef parameters::Pieces<REAL> Pieces;

// Where a block's row stands in packed memory: its first component, and how far it is to the next.
struct PackedRow {
  REAL* values;
  rs::i64 stride;
};

RS_FN PackedRow packed_row(const Transfer& p) {
  const int place = launch::block() % p.group, begin = launch::block() - place;
  const int left = p.total - begin, width = left < p.group ? left : p.group;
  return {p.packed + ((rs::i64)begin * p.count + place) * VALUES, (rs::i64)width * VALUES};
}

// The cells of a piece, x running fastest.
struct Box {
  int first, x, y, cells;

  RS_MEMBER explicit Box(unsigned bounds)
      : first((int)(bounds & 7) + PATCH * ((int)(bounds >> 4 & 7) + PATCH * (int)(bounds >> 8 & 7))),
        x((int)(bounds >> 12 & 15)), y((int)(bounds >> 16 & 15)), cells(x * y * (int)(bounds >> 20 & 15)) {}

  // Cell n of the box, as a cell of the row.
  RS_MEMBER int cell(int n) const {
    return cells == CELLS ? n : first + n % x + PATCH * (n / x % y + PATCH * (n / (x * y)));
  }
};

// Where the values of a piece stand.
RS_FN REAL* values_of(const Pieces& p, const Piece& piece) { return p.packed + piece.before * COMPONENTS; }

}  // namespace mesh

KERNEL(mesh_pack, mesh::Transfer) {
  using namespace mesh;
  const REAL* from = row_of(p.level, p.rows[launch::block()]) + p.first * VALUES;
  const PackedRow to = packed_row(p);
  EACH(i, p.count * VALUES) to.values[i / VALUES * to.stride + i % VALUES] = from[i];
}

KERNEL(mesh_unpack, mesh::Transfer) {
  using namespace mesh;
  const int row = p.rows[launch::block()];
  const PackedRow from = packed_row(p);
  REAL* to = row_of(p.level, row) + p.first * VALUES;
  EACH(i, p.count * VALUES) to[i] = from.values[i / VALUES * from.stride + i % VALUES];
  if (launch::thread() == 0) p.stale[row] = 1;
}

KERNEL(mesh_pack_pieces, mesh::Pieces) {
  using namespace mesh;
  const Piece piece = p.pieces[launch::block()];
  const Box box(piece.bounds);
  const REAL* from = row_of(p.level, piece.row);
  REAL* to = values_of(p, piece);
  EACH(i, COMPONENTS * box.cells) to[i] = from[i / box.cells * CELLS + box.cell(i % box.cells)];
}

KERNEL(mesh_unpack_pieces, mesh::Pieces) {
  using namespace mesh;
  const Piece piece = p.pieces[launch::block()];
  const Box box(piece.bounds);
  const REAL* from = values_of(p, piece);
  REAL* to = row_of(p.level, piece.row);
  EACH(i, COMPONENTS * box.cells) to[i / box.cells * CELLS + box.cell(i % box.cells)] = from[i];
  if (launch::thread() == 0) p.stale[piece.row] = 1;
}
