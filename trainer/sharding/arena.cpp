// Maps aligned memory and asks for huge pages, which make a step faster.
#include "trainer/sharding/arena.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <sys/mman.h>

#include <atomic>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

std::atomic<int64_t> total_bytes = 0;

}  // namespace

int64_t arena_bytes() { return total_bytes; }

Tensor make_arena(int64_t num_bytes, const at::Device& device) {
  if (!device.is_cpu()) return at::zeros({num_bytes}, at::TensorOptions().device(device).dtype(at::kByte));
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t size = num_bytes + 2 * kHugePage;  // room to begin and end with a whole huge page
  void* memory =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    fail(ExitCode::kNumerics,
         "[arena] could not allocate {} of memory in addition to {}: use a smaller micro_batch or model",
         human_bytes(static_cast<double>(num_bytes)), human_bytes(static_cast<double>(arena_bytes())));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
  // Eager PyTorch gains a factor of 1.1 to 1.2 from huge pages; a kernel without them ignores this. A short
  // end would only be cleared and take more memory, in each of a model's buffers.
  constexpr int64_t kShortEnd = kHugePage / 4;
  const int64_t end = num_bytes < kHugePage || num_bytes % kHugePage < kShortEnd ? 0 : kHugePage;
  if (const int64_t huge = num_bytes / kHugePage * kHugePage + end; huge > 0)
    madvise(reinterpret_cast<void*>(aligned), static_cast<size_t>(huge), MADV_HUGEPAGE);
  total_bytes += num_bytes;
  return at::from_blob(
      reinterpret_cast<void*>(aligned), {num_bytes},
      [memory, size, num_bytes](void*) {
        munmap(memory, static_cast<size_t>(size));
        total_bytes -= num_bytes;
      },
      at::TensorOptions().dtype(at::kByte));
}

Tensor arena_view(const Tensor& arena, int64_t offset, at::IntArrayRef shape, at::ScalarType dtype) {
  int64_t num_bytes = static_cast<int64_t>(at::elementSize(dtype));
  for (const int64_t dim : shape) num_bytes *= dim;
  return arena.narrow(0, offset, num_bytes).view(dtype).view(shape);
}

}  // namespace tycho
