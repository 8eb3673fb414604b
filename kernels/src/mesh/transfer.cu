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

// The values of a piece, vector by vector, component by component, x running fastest.
struct Box {
  int first[3], length[3], all;

  RS_MEMBER explicit Box(unsigned bounds) : all(0) {
    for (int a = 0; a < 3; ++a) {
      first[a] = (int)(bounds >> 4 * a & 7);
      length[a] = (int)(bounds >> (12 + 4 * a) & 15);
    }
    for (int c = 0; c < GROUPS; ++c) all += count(c);
  }

  // Values of component c.
  RS_MEMBER int count(int c) const {
    return (length[0] + staggered(c, 0)) * (length[1] + staggered(c, 1)) * (length[2] + staggered(c, 2));
  }

  // Where value i of the piece stands in the row.
  RS_MEMBER int place(int i) const {
    if (all == GROUPS * VALUES) return i;
    int c = i / all * GROUPS, n = i % all;
    if constexpr (GROUPS > 1)
      for (; n >= count(c); ++c) n -= count(c);
    const int x = length[0] + staggered(c, 0), y = length[1] + staggered(c, 1);
    return c * VALUES + value_at(c, first[0] + n % x, first[1] + n / x % y, first[2] + n / (x * y));
  }
};

// Where the values of a piece stand.
RS_FN REAL* values_of(const Pieces& p, const Piece& piece) { return p.packed + piece.before * (COMPONENTS / GROUPS); }

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
  EACH(i, COMPONENTS / GROUPS * box.all) to[i] = from[box.place(i)];
}

KERNEL(mesh_unpack_pieces, mesh::Pieces) {
  using namespace mesh;
  const Piece piece = p.pieces[launch::block()];
  const Box box(piece.bounds);
  const REAL* from = values_of(p, piece);
  REAL* to = row_of(p.level, piece.row);
  EACH(i, COMPONENTS / GROUPS * box.all) to[box.place(i)] = from[i];
  if (launch::thread() == 0) p.stale[piece.row] = 1;
}
