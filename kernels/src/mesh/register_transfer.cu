// Packs and unpacks fine-side registers for messages between ranks. One block per register.

namespace mesh {

typedef parameters::RegisterTransferParameters<REAL> RegisterTransferParameters;

// The slot of a register.
RS_FN int& fine_slot(const RegisterTransferParameters& p, const parameters::Piece& piece) {
  return p.fine_slot[(rs::i64)p.slots * piece.row + (piece.bounds & 15)];
}

}  // namespace mesh

// Assigns slots to registers of other ranks' patches. A single block.
KERNEL(mesh_assign_slots, mesh::RegisterTransferParameters) {
  EACH(n, p.count) mesh::fine_slot(p, p.pieces[n]) = p.first + n;
}

KERNEL(mesh_pack_registers, mesh::RegisterTransferParameters) {
  using namespace mesh;
  const parameters::Piece piece = p.pieces[launch::block()];
  const rs::i64 from = (rs::i64)fine_slot(p, piece) * p.values;
  REAL* to = p.packed + piece.before * p.groups;
  EACH(i, p.values) {
    to[i] = p.reference[from + i];
    to[p.values + i] = p.change[from + i];
  }
}

KERNEL(mesh_unpack_registers, mesh::RegisterTransferParameters) {
  using namespace mesh;
  const parameters::Piece piece = p.pieces[launch::block()];
  const rs::i64 to = (rs::i64)fine_slot(p, piece) * p.values;
  const REAL* from = p.packed + piece.before * p.groups;
  EACH(i, p.values) {
    p.reference[to + i] = from[i];
    p.change[to + i] = from[p.values + i];
  }
}
