// Gradients of attention into rows, on the CPU: copied, then rotated in place.
#include <cstring>

#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

void copy_heads(int64_t row, const HeadRows& from, int64_t heads, size_t head_bytes, size_t element,
                char* to) {
  const auto step = static_cast<int64_t>(element);
  const auto* source = static_cast<const char*>(from.data) + row * from.row_step * step;
  for (int64_t head = 0; head < heads; ++head)
    std::memcpy(to + static_cast<size_t>(head) * head_bytes, source + head * from.head_step * step,
                head_bytes);
}

}  // namespace

void pack_gradients(AttentionShape s, Dtype dtype, HeadRows dq, HeadRows dk, HeadRows dv, Rotations tables,
                    AttentionGradients to, Stream stream) {
  const size_t element = dtype == Dtype::kFp32 ? sizeof(float) : sizeof(Bf16);
  const size_t head_bytes = static_cast<size_t>(s.head_dim) * element;
  const int64_t rows = s.batch * s.seq, step = static_cast<int64_t>(element);
  for_row_blocks(rows, (s.heads + 2 * s.kv_heads) * s.head_dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      char* kv = static_cast<char*>(to.dkv) + row * to.kv_step * step;
      copy_heads(row, dq, s.heads, head_bytes, element, static_cast<char*>(to.dq) + row * to.q_step * step);
      copy_heads(row, dk, s.kv_heads, head_bytes, element, kv);
      copy_heads(row, dv, s.kv_heads, head_bytes, element, kv + static_cast<size_t>(s.kv_heads) * head_bytes);
    }
  });
  if (tables.rotary_dim == 0) return;
  const auto turn_back = [&](int64_t row_width, int64_t heads, const float* table, void* first_head) {
    rope({rows, s.seq, 0, row_width, heads, s.head_dim, tables.rotary_dim}, dtype, table, /*inverse=*/true,
         first_head, stream);
  };
  turn_back(to.q_step, s.heads, tables.queries, to.dq);
  turn_back(to.kv_step, s.kv_heads, tables.keys, to.dkv);
}

}  // namespace tycho::TYCHO_ISA
