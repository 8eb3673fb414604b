// Language of kernel skeletons: distributes work over threads, on a GPU or, with one thread per block, on a CPU.
//
// A skeleton must give the same result for any number of threads per block, including one. Work is distributed by EACH. No value of a
// thread lives across a `barrier()` unless it is the same in all threads. The same text, compiled by a C++ compiler, can then run block
// after block on the CPU, which is how kernels are tested without a GPU.

#if RS_DEVICE
#define KERNEL(name, Params) extern "C" __global__ void name(const __grid_constant__ Params p)
#define KERNEL_BOUNDS(name, Params, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Params p)
#define SHARED __shared__
extern __shared__ __align__(16) unsigned char rs_dynamic_shared[];
#else
#define KERNEL(name, Params)                                                                                   \
  static void name##_block(const Params& p);                                                                   \
  extern "C" void name(const void* p, int first, int last, int blocks, unsigned char* shared) {                 \
    launch::rs_blocks = blocks;                                                                                \
    launch::rs_shared = shared;                                                                                \
    for (int b = first; b < last; ++b) {                                                                       \
      launch::rs_block = b;                                                                                    \
      name##_block(*(const Params*)p);                                                                         \
    }                                                                                                          \
  }                                                                                                            \
  extern "C" int name##_parameter_bytes() { return (int)sizeof(Params); }                                       \
  static void name##_block(const Params& p)
#define KERNEL_BOUNDS(name, Params, threads, blocks) KERNEL(name, Params)
#define SHARED static thread_local
#endif

namespace launch {

#if RS_DEVICE
RS_FN int block() { return (int)blockIdx.x; }
RS_FN int blocks() { return (int)gridDim.x; }
RS_FN int thread() { return (int)threadIdx.x; }
RS_FN int threads() { return (int)blockDim.x; }
RS_FN void barrier() { __syncthreads(); }

// Barrier of all blocks of a launch whose blocks run at the same time. The upper bit of the word changes when all have arrived,
// so that the word needs no reset.
static __device__ unsigned rs_arrivals;
RS_FN void barrier_of_grid() {
  barrier();
  if (gridDim.x == 1) return;
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned before = atomicAdd(&rs_arrivals, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u);
    while (((before ^ *(volatile unsigned*)&rs_arrivals) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  barrier();
}
RS_FN bool any_of_block(bool x) { return __syncthreads_or(x); }
template<class T> RS_FN T* shared() { return (T*)rs_dynamic_shared; }
RS_FN unsigned atomic_add(unsigned* to, unsigned x) { return atomicAdd(to, x); }
RS_FN rs::u64 atomic_add(rs::u64* to, rs::u64 x) { return atomicAdd(to, x); }
RS_FN void atomic_or(unsigned* to, unsigned x) { atomicOr(to, x); }
RS_FN void atomic_max(unsigned* to, unsigned x) { atomicMax(to, x); }
RS_FN void atomic_max(rs::u64* to, rs::u64 x) { atomicMax(to, x); }
RS_FN unsigned atomic_swap_if(unsigned* to, unsigned expected, unsigned x) { return atomicCAS(to, expected, x); }

// Takes the next values of a counter, one for each calling thread.
RS_FN unsigned take_place(unsigned* counter) {
  const unsigned group = __activemask(), lane = threadIdx.x & 31;
  const int leader = __ffs(group) - 1;
  unsigned first = 0;
  if ((int)lane == leader) first = atomicAdd(counter, __popc(group));
  return __shfl_sync(group, first, leader) + __popc(group & ((1u << lane) - 1u));
}

// Adds in shared memory by 32-bit halves, which is faster than 64-bit atomics. The sum may be read only after a barrier.
RS_FN void add_shared(rs::u64* to, rs::u64 x) {
  const unsigned lower = (unsigned)x, before = atomicAdd((unsigned*)to, lower);
  const unsigned upper = (unsigned)(x >> 32) + (before + lower < lower ? 1u : 0u);
  if (upper != 0) atomicAdd((unsigned*)to + 1, upper);
}

// Returns the largest integer of the block's threads, in thread 0.
template<class U> RS_FN U largest_word_of_block(U bits) {
  SHARED U of_warp[32];
  for (int o = 16; o; o >>= 1) {
    const U other = __shfl_xor_sync(~0u, bits, o);
    bits = other > bits ? other : bits;
  }
  if ((thread() & 31) == 0) of_warp[thread() >> 5] = bits;
  barrier();
  if (thread() == 0)
    for (int w = 1; w < (threads() + 31) / 32; ++w) bits = of_warp[w] > bits ? of_warp[w] : bits;
  barrier();
  return bits;
}
#else
static thread_local int rs_block, rs_blocks;
static thread_local unsigned char* rs_shared;
RS_FN int block() { return rs_block; }
RS_FN int blocks() { return rs_blocks; }
RS_FN constexpr int thread() { return 0; }
RS_FN constexpr int threads() { return 1; }
RS_FN void barrier() {}
RS_FN void barrier_of_grid() {}
RS_FN bool any_of_block(bool x) { return x; }
template<class T> RS_FN T* shared() { return (T*)rs_shared; }
RS_FN unsigned atomic_add(unsigned* to, unsigned x) { return __atomic_fetch_add(to, x, __ATOMIC_RELAXED); }
RS_FN rs::u64 atomic_add(rs::u64* to, rs::u64 x) { return __atomic_fetch_add(to, x, __ATOMIC_RELAXED); }
RS_FN void atomic_or(unsigned* to, unsigned x) { __atomic_fetch_or(to, x, __ATOMIC_RELAXED); }
template<class U> RS_FN void atomic_max(U* to, U x) {
  U now = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (x > now && !__atomic_compare_exchange_n(to, &now, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
RS_FN unsigned atomic_swap_if(unsigned* to, unsigned expected, unsigned x) {
  __atomic_compare_exchange_n(to, &expected, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
RS_FN unsigned take_place(unsigned* counter) { return atomic_add(counter, 1u); }
RS_FN void add_shared(rs::u64* to, rs::u64 x) { *to += x; }
template<class U> RS_FN U largest_word_of_block(U bits) { return bits; }
#endif

// Returns the largest value of the block's threads, in thread 0. Values must not be negative; NaN counts as the largest.
template<class T> RS_FN T largest_of_block(T x) { return rs::from_bits(largest_word_of_block(rs::to_bits(x))); }

// Stores the larger of a non-negative number and the number whose bits are at `to`.
template<class T> RS_FN void store_largest(typename rs::lim<T>::U* to, T x) { atomic_max(to, rs::to_bits(x)); }

// Records a fault for the host, unless one is recorded: nine words, the code (not 0) and the bits of x, y, z, time.
RS_FN void leave_fault(unsigned* fault, unsigned code, const double* place, double time) {
  if (atomic_swap_if(fault, 0u, code) != 0u) return;
  for (int n = 0; n < 4; ++n) {
    const rs::u64 bits = rs::to_bits(n < 3 ? place[n] : time);
    fault[1 + 2 * n] = (unsigned)bits;
    fault[2 + 2 * n] = (unsigned)(bits >> 32);
  }
}

// The same with the leading values of a state, at most 8.
template<class R> RS_FN void leave_fault(unsigned* fault, unsigned code, const double* place, double time, const R* state, int count) {
  if (atomic_swap_if(fault, 0u, ~0u) != 0u) return;
  for (int n = 0; n < 12 && n - 4 < count; ++n) {
    const rs::u64 bits = rs::to_bits(n < 3 ? place[n] : n < 4 ? time : (double)state[n - 4]);
    fault[1 + 2 * n] = (unsigned)bits;
    fault[2 + 2 * n] = (unsigned)(bits >> 32);
  }
  fault[0] = code;
}

}  // namespace launch

// Distributes 0..n over the threads of all blocks.
#define EACH_OF_GRID(i, n) \
  for (int i = launch::block() * launch::threads() + launch::thread(); i < (n); i += launch::blocks() * launch::threads())

// Distributes 0..n over the threads of a block.
#define EACH(i, n) for (int i = launch::thread(); i < (n); i += launch::threads())
