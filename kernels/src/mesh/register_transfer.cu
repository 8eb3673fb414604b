// Packs and unpacks fine-side flux registers for messages between ranks. One block per face.

namespace mesh {

typedef parameters::RegisterTransferParameters<REAL> RegisterTransferParameters;

constexpr int REGISTER = COMPONENTS * QUARTER;

// The slot of a face.
RS_FN int& fine_slot(const RegisterTransferParameters& p, const parameters::Piece& piece) {
  return p.fine_slot[6 * piece.row + (piece.bounds & 15)];
}

}  // namespace mesh

// Assigns slots to faces of other ranks' patches. A single block.
KERNEL(mesh_assign_slots, mesh::RegisterTransferParameters) {
  EACH(n, p.count) mesh::fine_slot(p, p.pieces[n]) = p.first + n;
}

KERNEL(mesh_pack_faces, mesh::RegisterTransferParameters) {
  using namespace mesh;
  const parameters::Piece piece = p.pieces[launch::block()];
  const rs::i64 from = (rs::i64)fine_slot(p, piece) * REGISTER;
  REAL* to = p.packed + piece.before * COMPONENTS;
  EACH(i, REGISTER) {
    to[i] = p.reference[from + i];
    to[REGISTER + i] = p.change[from + i];
  }
}

KERNEL(mesh_unpack_faces, mesh::RegisterTransferParameters) {
  using namespace mesh;
  const parameters::Piece piece = p.pieces[launch::block()];
  const rs::i64 to = (rs::i64)fine_slot(p, piece) * REGISTER;
  const REAL* from = p.packed + piece.before * COMPONENTS;
  EACH(i, REGISTER) {
    p.reference[to + i] = from[i];
    p.change[to + i] = from[REGISTER + i];
  }
}
