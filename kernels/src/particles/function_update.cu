// Sets the leading numbers of particles to the results of a function. Include after functions.cuh.

// A particle whose result is not finite or whose mass is invalid keeps its numbers.
KERNEL(particles_update, particles::F::Parameters) {
  using namespace particles;
  SHARED u64 all[4];
  constexpr int COUNT = sizeof(F::Result) / sizeof(REAL);
  const Chunk chunk = particles::chunk(p.input.from);
  const PageView of = page_view(p.input.from.page_array);
  EACH(t, 4) all[t] = 0;
  launch::barrier();
  u64 gained = 0, grown = 0, changed = 0, invalid = 0;
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    const F::Result result = F::at(p, chunk.row, n);
    const REAL* member = (const REAL*)&result;
    const double before = (double)number_of(Particle{p.input, chunk.row, n}, 0), mass = (double)member[0];
    bool sound = functions::is_mass_sound(mass, before, p.input.from.masses, p.input.quanta_per_mass);
    RS_UNROLL for (int c = 1; c < COUNT; ++c) sound = sound && rs::is_finite(member[c]);
    if (!sound) {
      invalid = rs::max(invalid, ~of.id(n));
      continue;
    }
    const u64 old_quanta = cloud::quanta_of<double>(before, p.input.quanta_per_mass);
    const u64 quanta = cloud::quanta_of<double>(mass, p.input.quanta_per_mass);
    gained += quanta - old_quanta;
    grown += quanta > old_quanta ? quanta - old_quanta : 0;
    changed += mass != before ? 1 : 0;
    RS_UNROLL for (int c = 0; c < COUNT; ++c)
      if (p.input.columns[c] >= 0) of.number(p.input.columns[c], n) = member[c];
  }
  if (gained != 0) launch::atomic_add(all, gained);
  if (grown != 0) launch::atomic_add(all + 1, grown);
  if (changed != 0) launch::atomic_add(all + 2, changed);
  if (invalid != 0) launch::atomic_max(all + 3, invalid);
  launch::barrier();
  EACH(t, 4) {
    if (t == 3) launch::atomic_max(p.input.words + t, all[t]);
    else if (all[t] != 0) launch::atomic_add(p.input.words + t, all[t]);
  }
}
