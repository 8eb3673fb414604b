// Reductions over particles, as in the host diagnostics. Include after pages.cuh.

// Finds the largest velocity and acceleration along each axis.
KERNEL(particles_maximum, particles::args::MaximumParameters) {
  using namespace particles;
  typedef rs::lim<REAL>::U Bits;
  const Chunk chunk = particles::chunk(p.from);
  const PageView from = page_view(p.from.page_array);
  Bits most[6] = {};
  EACH(k, chunk.count) {
    RS_UNROLL for (int c = 0; c < 6; ++c) {
      const Bits bits = rs::to_bits(rs::abs(from.number(VELOCITY + c, chunk.first + k)));
      most[c] = bits > most[c] ? bits : most[c];
    }
  }
  RS_UNROLL for (int c = 0; c < 6; ++c) {
    const Bits largest = launch::largest_word_of_block(most[c]);
    if (launch::thread() == 0) launch::atomic_max((Bits*)(p.largest + c), largest);
  }
}

// Finds the largest magnitudes of the terms, or their sums.
KERNEL(particles_terms, particles::args::TermsParameters) {
  using namespace particles;
  namespace terms = ::nestar_kernels::particles::terms;
  SHARED u64 all[8];
  const Chunk chunk = particles::chunk(p.from);
  const PageView from = page_view(p.from.page_array);
  const int* index = p.from.tables.index + 4 * (i64)chunk.row;
  EACH(t, 8) all[t] = 0;
  launch::barrier();
  u64 own[8] = {};
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    rs::arr<double, 3> x, v;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      x[axis] = terms::position(widen(from.offset(axis, n)), index[axis], p.left[axis], p.width[axis]);
      v[axis] = (double)from.number(VELOCITY + axis, n);
    }
    const double mass = p.from.masses ? (double)from.number(MASS, n) : p.mass;
    const auto values = terms::terms(mass, x, v);
    RS_UNROLL for (int t = 0; t < 7; ++t) {
      if (p.sizes) {
        const u64 bits = rs::to_bits(rs::abs(values.d[t]));
        own[t] = bits > own[t] ? bits : own[t];
      } else {
        own[t] += terms::round_to_integer(values.d[t] * p.scales[t]);
      }
    }
    own[7] += cloud::quanta_of<double>(mass, p.quanta_per_mass);
  }
  RS_UNROLL for (int t = 0; t < 8; ++t) {
    if (p.sizes && t < 7) launch::atomic_max(&all[t], own[t]);
    else launch::atomic_add(&all[t], own[t]);
  }
  launch::barrier();
  EACH(t, 8) {
    if (p.sizes && t < 7) launch::atomic_max(p.out + t, all[t]);
    else launch::atomic_add(p.out + t, all[t]);
  }
}
