// Gathers the faces of rows with those of their ghost cells, for kernels of other fields. The text before this file defines
// `gathered::GHOSTS`. Follows face_ghosts.cuh.
KERNEL(mesh_gather_faces, mesh::parameters::GatherFacesParameters<mesh::REAL>) {
  constexpr int values = mesh::COMPONENTS * mesh::FACE_BLOCK<gathered::GHOSTS>;
  for (int n = launch::block(); n < p.count; n += launch::blocks()) {
    mesh::gather_faces<gathered::GHOSTS>(p.out + (rs::i64)n * values, p.view, p.rows[n]);
    launch::barrier();
  }
}
