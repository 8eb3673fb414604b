// Fine-side flux registers into and out of contiguous memory, on their way between processes. One block a face.

namespace mesh {

// The twin of `FacesParameters`.
struct Faces {
  const int* faces;  // 6 * row + face
  int* fine_slot;    // [row][6]
  REAL* reference;   // [slot][COMPONENTS][4][4]
  REAL* change;      // [slot][COMPONENTS][4][4]
  REAL* packed;      // [face][2][COMPONENTS][4][4]
  int first;         // slot of the first face
  int count;         // faces
};

constexpr int REGISTER = COMPONENTS * QUARTER;

}  // namespace mesh

// Gives faces of others' patches their slots. One block for all.
KERNEL(mesh_give_slots, mesh::Faces) {
  EACH(n, p.count) p.fine_slot[p.faces[n]] = p.first + n;
}

KERNEL(mesh_pack_faces, mesh::Faces) {
  using namespace mesh;
  const rs::i64 from = (rs::i64)p.fine_slot[p.faces[launch::block()]] * REGISTER;
  REAL* to = p.packed + (rs::i64)launch::block() * (2 * REGISTER);
  EACH(i, REGISTER) {
    to[i] = p.reference[from + i];
    to[REGISTER + i] = p.change[from + i];
  }
}

KERNEL(mesh_unpack_faces, mesh::Faces) {
  using namespace mesh;
  const rs::i64 to = (rs::i64)p.fine_slot[p.faces[launch::block()]] * REGISTER;
  const REAL* from = p.packed + (rs::i64)launch::block() * (2 * REGISTER);
  EACH(i, REGISTER) {
    p.reference[to + i] = from[i];
    p.change[to + i] = from[REGISTER + i];
  }
}
