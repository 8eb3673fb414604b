// Calls the derived inputs of a list for sums along an axis. Follows list.cuh.

namespace cells {

// The derived inputs of a list in a cell.
template<class L> struct Numbers {
  static constexpr int REACH = 0, MORE = 0, KEPT = L::KEPT;
  typedef ::nestar_kernels::mesh::parameters::CellParameters<REAL, ::nestar_kernels::mesh::parameters::ColumnOptions> Parameters;
  static RS_MEMBER void at(const Input& p, int row, int cell, REAL* numbers) { keep_numbers<L>(p, row, cell, numbers); }
};

}  // namespace cells
