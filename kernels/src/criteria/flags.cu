// Flags the patches of a level: the twin of flags.rs. Follows cell.cuh, sectors.cuh and the run's criteria, which are, in namespace
// `criteria`:
//
//   constexpr int FIELDS                    fields of which criteria read the surroundings of a cell
//   constexpr bool READS_STATE              whether `own` reads the state
//   constexpr bool IN_SHARED                whether a block's values fit into shared memory
//   void fields(const REAL* u, const Place& at, REAL* values)                           the FIELDS at a cell
//   bool own(const REAL* u, const Place& at, unsigned* fault)                           criteria that look at one cell
//   bool around(const REAL* block, int cell, const Place& at, unsigned* fault)          the others, block[FIELDS][BLOCK]

namespace criteria {

// Values of a block: the fields, and while they are gathered at a wall the state.
constexpr int VALUES = (field::BOUNDED && COMPONENTS > FIELDS ? COMPONENTS : FIELDS) * BLOCK;

typedef ::nestar_kernels::criteria::device::FlagParameters<REAL> Flags;

// The cell of the level with coordinates x, y, z in a patch.
RS_FN Place place(const Flags& p, int row, int x, int y, int z) {
  const int* index = p.view.index + (rs::i64)row * 4;
  return Place{p.view, p.level, PATCH * index[0] + x, PATCH * index[1] + y, PATCH * index[2] + z};
}

// Flags by the criteria that look at one cell.
RS_FN void flag_own(const Flags& p, int row, unsigned* words) {
  const REAL* state = mesh::row_of(p.view.level, row);
  EACH(c, CELLS) {
    REAL u[COMPONENTS];
    if constexpr (READS_STATE) {
      EACH_COMPONENT(component) u[component] = state[component * CELLS + c];
    }
    if (own(u, place(p, row, c % PATCH, c / PATCH % PATCH, c / (PATCH * PATCH)), p.fault)) set_flag(words, c);
  }
}

// Stores the fields of a gathered cell.
struct Keep {
  const Flags& p;
  int row;
  RS_MEMBER void operator()(REAL* block, int c, const REAL* u) const {
    constexpr int G = GHOSTS;
    REAL values[FIELDS > 0 ? FIELDS : 1];
    fields(u, place(p, row, c % WIDTH - G, c / WIDTH % WIDTH - G, c / (WIDTH * WIDTH) - G), values);
    RS_UNROLL for (int f = 0; f < FIELDS; ++f) block[f * BLOCK + c] = values[f];
  }
};

// Flags by the criteria that look at a cell's surroundings.
RS_FN void flag_around(const Flags& p, int row, REAL* block, unsigned* words) {
  mesh::gather<GHOSTS>(block, p.view, row, Keep{p, row});
  EACH(c, CELLS) {
    const int x = c % PATCH, y = c / PATCH % PATCH, z = c / (PATCH * PATCH);
    const int at = x + GHOSTS + WIDTH * (y + GHOSTS + WIDTH * (z + GHOSTS));
    if (around(block, at, place(p, row, x, y, z), p.fault)) set_flag(words, c);
  }
}

// `words` are 16 for the flags, bit 8 j + i of plane k in two words a plane, and one for the sectors.
RS_FN void flag_patch(const Flags& p, int n, REAL* block, unsigned* words) {
  EACH(w, 17) words[w] = 0;
  launch::barrier();
  flag_own(p, p.rows[n], words);
  if constexpr (FIELDS > 0) flag_around(p, p.rows[n], block, words);
  launch::barrier();
  EACH(sector, 27) {
    if (reaches(words, sector, p.level.buffer)) launch::atomic_or(words + 16, 1u << sector);
  }
  launch::barrier();
  EACH(once, 1) p.sectors[n] = words[16];
  launch::barrier();
}

}  // namespace criteria

KERNEL_BOUNDS(flag, criteria::Flags, 256, 2) {
  SHARED unsigned words[17];
  criteria::REAL* block;
  if constexpr (criteria::IN_SHARED) block = launch::shared<criteria::REAL>();
  else block = p.scratch + (rs::i64)launch::block() * criteria::VALUES;
  for (int n = launch::block(); n < p.count; n += launch::blocks()) criteria::flag_patch(p, n, block, words);
}
