// Fine-side flux registers into and out of contiguous memory, on their way between processes. One block a face.

namespace mesh {

typedef parameters::Faces<REAL> Faces;

constexpr int REGISTER = COMPONENTS * QUARTER;

// Where the values of the block's face stand.
RS_FN REAL* packed_face(const Faces& p) { return p.packed + (rs::i64)launch::block() * 2 * REGISTER; }

}  // namespace mesh

// Gives faces of others' patches their slots. One block for all.
KERNEL(mesh_give_slots, mesh::Faces) {
  EACH(n, p.count) p.fine_slot[p.faces[n]] = p.first + n;
}

KERNEL(mesh_pack_faces, mesh::Faces) {
  using namespace mesh;
  const rs::i64 from = (rs::i64)p.fine_slot[p.faces[launch::block()]] * REGISTER;
  REAL* to = packed_face(p);
  EACH(i, REGISTER) {
    to[i] = p.reference[from + i];
    to[REGISTER + i] = p.change[from + i];
  }
}

KERNEL(mesh_unpack_faces, mesh::Faces) {
  using namespace mesh;
  const rs::i64 to = (rs::i64)p.fine_slot[p.faces[launch::block()]] * REGISTER;
  const REAL* from = packed_face(p);
  EACH(i, REGISTER) {
    p.reference[to + i] = from[i];
    p.change[to + i] = from[REGISTER + i];
  }
}
