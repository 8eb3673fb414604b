// Reduces the results of a function to one integer. Include after functions.cuh.

KERNEL(particles_reduce, particles::F::Parameters) {
  using namespace particles;
  SHARED u64 all;
  const Chunk chunk = particles::chunk(p.input.from);
  const bool sums = p.input.what == functions::SUM;
  EACH(once, 1) all = 0;
  launch::barrier();
  u64 own = 0;
  EACH(k, chunk.count) {
    const u64 value = functions::reduced((double)F::at(p, chunk.row, chunk.first + k), p.input.what, p.input.scale);
    own = sums ? own + value : rs::max(own, value);
  }
  if (sums) launch::atomic_add(&all, own);
  else launch::atomic_max(&all, own);
  launch::barrier();
  EACH(once, 1) {
    if (sums) launch::atomic_add(p.input.words, all);
    else launch::atomic_max(p.input.words, all);
  }
}
