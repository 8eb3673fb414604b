// Short messages between devices: the kernel of mailbox.rs.

namespace mailbox {

using namespace ::nestar_kernels::mailbox;
using rs::i64;
using rs::u64;

#if RS_DEVICE
// Acquire: data that another device wrote before releasing a word is visible once the word is read.
RS_FN u64 load_acquire(const u64* word) {
  u64 x;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(word) : "memory");
  return x;
}
RS_FN void store_release(u64* word, u64 x) { asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory"); }
#else
RS_FN u64 load_acquire(const u64* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
RS_FN void store_release(u64* word, u64 x) { __atomic_store_n(word, x, __ATOMIC_RELEASE); }
#endif

// Polls between two checks of the abort flag, which is in host memory.
constexpr int ABORT_CHECK_INTERVAL = 4096;

// Waits until a word has a value; returns false if the abort flag is set.
RS_FN bool wait_for(const u64* word, u64 value, const volatile unsigned* abort_flag) {
  for (int n = 1; load_acquire(word) != value; n = n % ABORT_CHECK_INTERVAL + 1)
    if (n == ABORT_CHECK_INTERVAL && *abort_flag != 0) return false;
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

}  // namespace mailbox

KERNEL(mailbox_exchange, mailbox::MailboxExchange) {
  using namespace mailbox;
  int w = 0;
  while (w + 1 < p.count && p.entries[w + 1].block <= launch::block()) ++w;
  const MailboxEntry& entry = p.entries[w];
  const bool sends = w < p.sends;
  const i64 part = launch::block() - entry.block, first = part * SLOT, left = entry.bytes - first;
  const u64 number = entry.number + (u64)part, n = number % SLOTS;
  bool aborted = false;
  if (launch::thread() == 0) {
    if (!sends) aborted = !wait_for(entry.written_numbers + n, number + 1, p.abort_flag);
    else if (number >= SLOTS) aborted = !wait_for(entry.read_numbers + n, number + 1 - SLOTS, p.abort_flag);
  }
  if (launch::any_of_block(aborted)) return;
  unsigned char* slot = entry.slots + (i64)n * SLOT;
  unsigned char* memory = entry.memory + first;
  const i64 bytes = left < SLOT ? left : SLOT;
  if (sends) copy(slot, memory, bytes);
  else copy(memory, slot, bytes);
  launch::barrier();
  if (launch::thread() == 0) store_release((sends ? entry.written_numbers : entry.read_numbers) + n, number + 1);
}
