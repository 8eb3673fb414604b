// Updates cells by the fluxes through their faces and records the fluxes in registers. Results go to `out`.

namespace cells {

// Computes the fluxes through all faces of a patch, `[axis][component][FACES]`.
RS_FN void all_fluxes(const F::Parameters& p, const REAL* block, int row, REAL* flux) {
  EACH(f, 3 * FACES) {
    const int axis = f / FACES, at = f % FACES, wide = axis == 0 ? 9 : 8, deep = axis == 1 ? 9 : 8;
    const F::Result through = F::at(p, block, row, axis, at % wide, at / wide % deep, at / (wide * deep));
    const REAL* member = (const REAL*)&through;
    RS_UNROLL for (int c = 0; c < F::COUNT; ++c) flux[(axis * F::COUNT + c) * FACES + at] = member[c];
  }
  launch::barrier();
}

}  // namespace cells

KERNEL(cells_conserve, cells::F::Parameters) {
  using namespace cells;
  constexpr int COUNT = F::COUNT, N = PATCH + 2 * F::REACH;
  const rs::arr<REAL, 3> rate{{(REAL)p.rate[0], (REAL)p.rate[1], (REAL)p.rate[2]}};
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    REAL* block = around(p.input, row);
    REAL* flux = block + mesh::COMPONENTS * N * N * N;
    all_fluxes(p, block, row, flux);
    const rs::i64 first = (rs::i64)row * (p.input.out_components * CELLS);
    EACH(value, COUNT * CELLS) {
      const REAL* of_component = flux + value / CELLS * FACES;
      p.input.out[first + value] =
          mesh::advanced(p.input.fields[0][first + value], of_component, COUNT * FACES, value % CELLS, rate);
    }
    for (int c = 0; c < COUNT; ++c) {
      if (p.adds) mesh::store_registers<true>(p.registers, row, c, flux + c * FACES, COUNT * FACES, (REAL)p.dt);
      else mesh::store_registers<false>(p.registers, row, c, flux + c * FACES, COUNT * FACES);
    }
    if (launch::thread() == 0) p.input.stale[row] = 1;
  }
}
