// Access to the columns of particle pages, with the layout of the host. Include after the gather of the mesh.

namespace particles {

using field::REAL;
using rs::i64;
using rs::u64;
namespace cloud = ::nestar_kernels::particles::cloud;
namespace motion = ::nestar_kernels::particles::motion;
namespace args = ::nestar_kernels::particles::device;

constexpr int CHUNK = 4096;
constexpr unsigned PAGE = 32;
// First columns of vectors and of the mass, after the identity.
constexpr int VELOCITY = 3, ACCELERATION = 6, MASS = 9;

// Fixed-point type of offsets: the upper bits.
template<class R> struct FixedPoint;
template<> struct FixedPoint<float> {
  typedef unsigned t;
  static constexpr unsigned BITS = 32;
};
template<> struct FixedPoint<double> {
  typedef u64 t;
  static constexpr unsigned BITS = 64;
};
typedef FixedPoint<REAL>::t Offset;
constexpr unsigned BITS = FixedPoint<REAL>::BITS;
RS_FN u64 widen(Offset offset) { return (u64)offset << (64 - BITS); }
RS_FN Offset narrow(u64 offset) { return (Offset)(offset >> (64 - BITS)); }

// View of pages of 32 particles.
struct PageView {
  unsigned char* words;
  i64 page;
  RS_MEMBER u64& id(i64 n) const { return ((u64*)page_of(n))[in_page(n)]; }
  RS_MEMBER REAL& number(int column, i64 n) const { return ((REAL*)(page_of(n) + 8 * PAGE))[column * PAGE + in_page(n)]; }
  RS_MEMBER Offset& offset(int axis, i64 n) const { return ((Offset*)(page_of(n) + 8 * PAGE))[axis * PAGE + in_page(n)]; }
  RS_MEMBER unsigned char* page_of(i64 n) const { return words + (u64)n / PAGE * page; }
  RS_MEMBER unsigned in_page(i64 n) const { return (unsigned)n % PAGE; }
};
RS_FN PageView page_view(const args::PageArray& page_array) { return PageView{(unsigned char*)page_array.words, page_array.page}; }

// Copies a particle.
RS_FN void copy(const PageView& from, i64 n, const PageView& to, i64 at, int numbers) {
  to.id(at) = from.id(n);
  for (int c = 0; c < numbers; ++c) to.number(c, at) = from.number(c, n);
}

// Chunk of a list.
struct Chunk {
  int row;
  i64 first;
  int count;
};
RS_FN Chunk chunk(const args::ParticleList& from, int number) {
  const unsigned* at = from.chunks + 3 * (i64)number;
  return Chunk{(int)at[0], (i64)at[1], (int)at[2]};
}
RS_FN Chunk chunk(const args::ParticleList& from) { return chunk(from, launch::block()); }

RS_FN int direction(int x, int y, int z) { return mesh::SELF + x + 3 * y + 9 * z; }
RS_FN int direction(const int* step) { return direction(step[0], step[1], step[2]); }
// Direction of a step along one axis.
RS_FN int direction_along(int axis, int step) { return mesh::SELF + step * (axis == 0 ? 1 : axis == 1 ? 3 : 9); }
RS_FN const int* around(const args::HierarchyTables& tables, int row) { return tables.neighbours + (i64)row * mesh::AROUND; }
RS_FN bool is_leaf(const args::HierarchyTables& tables, int row) { return tables.first_child[row] == mesh::LEAF; }
RS_FN bool is_own(const args::HierarchyTables& tables, int row) { return (around(tables, row)[27] & mesh::IS_COPY) == 0; }
// Side of the parent on which a patch lies, along an axis.
RS_FN int side_of(const args::HierarchyTables& tables, int row, int axis) { return tables.index[4 * (i64)row + axis] & 1; }

}  // namespace particles
