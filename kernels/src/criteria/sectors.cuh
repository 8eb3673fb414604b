// Finds the patches within the flag buffer of flagged cells: the twin of flags.rs. `words` has 16 entries, bit 8 j + i of plane k in two
// words per plane.

namespace criteria {

RS_FN void set_flag(unsigned* words, int c) { launch::atomic_or(words + c / 32, 1u << (c % 32)); }

// Returns the coordinates of a patch, as bits, from which `buffer` cells reach into the sector below (0), the patch (1), and the sector
// above (2).
RS_FN unsigned reaching(int side, int buffer) {
  return side == 0 ? (1u << buffer) - 1 : side == 1 ? 0xffu : 0xffu << (8 - buffer) & 0xffu;
}

// Returns true if the buffer of a flagged cell reaches into a sector; see buffer_sectors in flags.rs.
RS_FN bool reaches(const unsigned* words, int sector, int buffer) {
  const unsigned columns = reaching(sector % 3, buffer) * 0x01010101u;
  const unsigned rows = reaching(sector / 3 % 3, buffer), planes = reaching(sector / 9, buffer);
  unsigned touched = 0;
  for (int w = 0; w < 16; ++w) {
    if (!(planes >> (w / 2) & 1)) continue;
    for (int j = 0; j < 4; ++j)
      if (rows >> (4 * (w % 2) + j) & 1) touched |= words[w] & columns & (0xffu << (8 * j));
  }
  return touched != 0;
}

}  // namespace criteria
