// Copies a gathered row of a field, ghost cells included: the block that functions and schemes read.
KERNEL(cells_window, cells::F::Parameters) {
  using namespace cells;
  const REAL* block = around(p.input, p.input.rows[0]);
  EACH(n, mesh::COMPONENTS * mesh::BLOCK<F::REACH>) p.input.out[n] = block[n];
}
