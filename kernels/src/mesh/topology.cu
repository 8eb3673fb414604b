// Builds the tables of the patch hierarchy: the twin of the engine's Topology::relink. Needs no field.

namespace topology {

using namespace ::nestar_kernels::mesh::parameters;

constexpr int COARSER = -1, OUTSIDE = -2, SELF = 13, AROUND = 28, HAS_COARSER = 1, HAS_OUTSIDE = 2;
// Words per row over all tables: neighbours with their codes, parent, first child, index with level.
constexpr int WORDS = AROUND + 6;
// Patches per block.
constexpr int CHUNK = 256;

// Returns the address of word w of a row.
RS_FN int* place(const ScatterParameters& p, rs::i64 row, int w) {
  if (w < AROUND) return p.neighbours + row * AROUND + w;
  if (w == AROUND) return p.parent + row;
  if (w == AROUND + 1) return p.first_child + row;
  return p.index + row * 4 + (w - AROUND - 2);
}

// Returns the neighbour in direction d of a patch that is child `index & 1` of its parent.
RS_FN int neighbour(const LinkParameters& p, const int* around, const int* index, int row, int d) {
  if (d == SELF) return row;
  const int x = (index[0] & 1) + d % 3 - 1, y = (index[1] & 1) + d / 3 % 3 - 1, z = (index[2] & 1) + d / 9 - 1;
  // one patch of the parent's level spans two of this level; the shift rounds down for negative numbers too
  const int parent = around[9 * ((z >> 1) + 1) + 3 * ((y >> 1) + 1) + (x >> 1) + 1];
  if (parent < 0) return parent;
  const int first = p.first_child[parent];
  return first < 0 ? COARSER : first + (x & 1) + 2 * (y & 1) + 4 * (z & 1);
}

}  // namespace topology

// Writes rows of a table.
KERNEL(topology_set, topology::SetParameters) {
  EACH(i, topology::CHUNK) {
    const int n = launch::block() * topology::CHUNK + i;
    if (n >= p.count) continue;
    for (int w = 0; w < p.width; ++w)
      p.table[(rs::i64)p.rows[n] * p.width + w] = p.values[(rs::i64)n * p.width + w];
  }
}

// Writes rows of all tables.
KERNEL(topology_scatter, topology::ScatterParameters) {
  using namespace topology;
  // neighbouring threads write neighbouring words
  EACH(i, CHUNK * WORDS) {
    const int n = launch::block() * CHUNK + i / WORDS, w = i % WORDS;
    if (n < p.count) *place(p, p.rows[n], w) = p.words[(rs::i64)n * WORDS + w];
  }
}

// Sets parent, index and children of the patches of a level.
KERNEL(topology_adopt, topology::AdoptParameters) {
  EACH(i, topology::CHUNK) {
    const int n = launch::block() * topology::CHUNK + i;
    if (n >= p.count) continue;
    const rs::i64 row = p.rows[n], parent = p.parents[n / 8];
    p.parent[row] = (int)parent;
    p.first_child[row] = p.children[n];
    for (int a = 0; a < 3; ++a) p.index[row * 4 + a] = 2 * p.index[parent * 4 + a] + (int)(row >> a & 1);
    p.index[row * 4 + 3] = p.level;
  }
}

// Builds the neighbour tables of a level from those of its parents.
KERNEL(topology_link, topology::LinkParameters) {
  using namespace topology;
  EACH(i, CHUNK) {
    const int n = launch::block() * CHUNK + i;
    if (n >= p.count) continue;
    const rs::i64 row = p.rows[n];
    const int* around = p.neighbours + (rs::i64)p.parent[row] * AROUND;
    int* out = p.neighbours + row * AROUND;
    int codes = 0;
    for (int d = 0; d < 27; ++d) {
      const int found = neighbour(p, around, p.index + row * 4, (int)row, d);
      codes |= found == COARSER ? HAS_COARSER : found == OUTSIDE ? HAS_OUTSIDE : 0;
      out[d] = found;
    }
    out[27] = codes;
  }
}
