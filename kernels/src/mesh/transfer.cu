// Packs and unpacks pieces of rows. One block per piece.

namespace mesh {

using parameters::Piece;
typedef parameters::TransferParameters<REAL> TransferParameters;

// Values of a piece: by vector, then by component, x fastest.
struct Box {
  int first[3], length[3], all;

  RS_MEMBER explicit Box(unsigned bounds) : all(0) {
    for (int a = 0; a < 3; ++a) {
      first[a] = (int)(bounds >> 4 * a & 7);
      length[a] = (int)(bounds >> (12 + 4 * a) & 15);
    }
    for (int c = 0; c < GROUPS; ++c) all += count(c);
  }

  // Number of values of component c.
  RS_MEMBER int count(int c) const {
    return (length[0] + staggered(c, 0)) * (length[1] + staggered(c, 1)) * (length[2] + staggered(c, 2));
  }

  // Position in the row of value i of the piece.
  RS_MEMBER int place(int i) const {
    if (all == GROUPS * VALUES) return i;
    int c = i / all * GROUPS, n = i % all;
    if constexpr (GROUPS > 1)
      for (; n >= count(c); ++c) n -= count(c);
    const int x = length[0] + staggered(c, 0), y = length[1] + staggered(c, 1);
    return c * VALUES + value_at(c, first[0] + n % x, first[1] + n / x % y, first[2] + n / (x * y));
  }
};

// Address and number of the values of a piece.
RS_FN REAL* packed(const TransferParameters& p, const Piece& piece) { return p.packed + piece.before * p.count / GROUPS; }
RS_FN int values(const TransferParameters& p, const Box& box) { return box.all * p.count / GROUPS; }

}  // namespace mesh

KERNEL(mesh_pack, mesh::TransferParameters) {
  using namespace mesh;
  const Piece piece = p.pieces[launch::block()];
  const Box box(piece.bounds);
  const REAL* from = row_of(p.level, piece.row) + p.first * VALUES;
  REAL* to = p.stride > 0 ? p.packed + piece.before / GROUPS : packed(p, piece);
  EACH(i, values(p, box)) to[p.stride > 0 ? i / VALUES * p.stride + i % VALUES : i] = from[box.place(i)];
}

KERNEL(mesh_unpack, mesh::TransferParameters) {
  using namespace mesh;
  const Piece piece = p.pieces[launch::block()];
  const Box box(piece.bounds);
  const REAL* from = packed(p, piece);
  REAL* to = row_of(p.level, piece.row) + p.first * VALUES;
  EACH(i, values(p, box)) to[box.place(i)] = from[i];
  if (launch::thread() == 0) p.stale[piece.row] = 1;
}
