// Short messages between devices: the text of passing.rs.

namespace passing {

using namespace ::nestar_kernels::passing;
using rs::i64;
using rs::u64;

#if RS_DEVICE
// What another device wrote before it showed a word is there once the word is seen.
RS_FN u64 seen(const u64* word) {
  u64 x;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(word) : "memory");
  return x;
}
RS_FN void show(u64* word, u64 x) { asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory"); }
#else
RS_FN u64 seen(const u64* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
RS_FN void show(u64* word, u64 x) { __atomic_store_n(word, x, __ATOMIC_RELEASE); }
#endif

// Looks between two looks at whether all is given up, which stands in the host's memory.
constexpr int LOOKS = 4096;

// Waits until a word has a value; not if all is given up.
RS_FN bool comes(const u64* word, u64 value, const volatile unsigned* given_up) {
  for (int n = 1; seen(word) != value; n = n % LOOKS + 1)
    if (n == LOOKS && *given_up != 0) return false;
  return true;
}

struct alignas(16) Quad {
  u64 words[2];
};

template<class W> RS_FN i64 copy_words(unsigned char* to, const unsigned char* from, i64 bytes) {
  const i64 words = bytes / (i64)sizeof(W);
  EACH(k, words) ((W*)to)[k] = ((const W*)from)[k];
  return words * (i64)sizeof(W);
}

RS_FN void copy(unsigned char* to, const unsigned char* from, i64 bytes) {
  const u64 places = (u64)to | (u64)from;
  const i64 done = places % 16 == 0 ? copy_words<Quad>(to, from, bytes) : places % 4 == 0 ? copy_words<unsigned>(to, from, bytes) : 0;
  copy_words<unsigned char>(to + done, from + done, bytes - done);
}

}  // namespace passing

KERNEL(passing_pass, passing::Pass) {
  using namespace passing;
  int w = 0;
  while (w + 1 < p.count && p.ways[w + 1].block <= launch::block()) ++w;
  const Way& way = p.ways[w];
  const bool sends = w < p.sends;
  const i64 part = launch::block() - way.block, first = part * SLOT, left = way.bytes - first;
  const u64 number = way.number + (u64)part, n = number % SLOTS;
  bool is_late = false;
  if (launch::thread() == 0) {
    if (!sends) is_late = !comes(way.filled + n, number + 1, p.given_up);
    else if (number >= SLOTS) is_late = !comes(way.emptied + n, number + 1 - SLOTS, p.given_up);
  }
  if (launch::any_of_block(is_late)) return;
  unsigned char* slot = way.slots + (i64)n * SLOT;
  unsigned char* memory = way.memory + first;
  const i64 bytes = left < SLOT ? left : SLOT;
  if (sends) copy(slot, memory, bytes);
  else copy(memory, slot, bytes);
  launch::barrier();
  if (launch::thread() == 0) show((sends ? way.filled : way.emptied) + n, number + 1);
}
