// Sizes of gathered tensors, and of tensors that travel on a ring.
#include "trainer/layout/cp_slots.h"

namespace tycho {

std::vector<SlotSpec> cp_slots(const DecoderSpec& s, BatchShape whole, int64_t compute_bytes,
                               const CpShape& cp) {
  constexpr int64_t kFp32 = 4;
  const int64_t E = s.attention.width(), KV = s.attention.qkv_width() - E, N = whole.tokens() / cp.size;
  const int64_t gathered = cp.size > 1 && !cp.ring ? whole.tokens() : 0, own = cp.ring ? N : 0;
  return {{"all_kv", {gathered, KV}},
          {"kv_workspace", {gathered, KV}},
          {"ring_kv", {2, own, KV}},
          {"ring_d_kv", {3, own, KV}, SlotType::kFp32},
          {"ring_sum", {compute_bytes == kFp32 ? 0 : own, E}, SlotType::kFp32}};
}

}  // namespace tycho
