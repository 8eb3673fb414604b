// Which patches the surroundings of flagged cells reach into: the twin of flags.rs. `words` are 16, bit 8 j + i of plane k in
// two words a plane.

namespace criteria {

RS_FN void set_flag(unsigned* words, int c) { launch::atomic_or(words + c / 32, 1u << (c % 32)); }

// Which coordinates of a patch, as bits, a box of `buffer` cells to each side reaches from into the sector below (0), the
// patch (1), and the sector above (2).
RS_FN unsigned reaching(int side, int buffer) {
  return side == 0 ? (1u << buffer) - 1 : side == 1 ? 0xffu : 0xffu << (8 - buffer) & 0xffu;
}

// Whether the surroundings of a flagged cell reach into a sector; see buffer_sectors in flags.rs.
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
