// Checks of shapes, dtypes, devices and ranks.
#include "trainer/comm/collective_checks.h"

#include <cstdint>
#include <string>

namespace tycho {
namespace {

std::string text_of(const Tensor& x) {
  return fmt::format("{} {} on {}", x.numel(), c10::toString(x.scalar_type()), x.device().str());
}

bool can_be_summed(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kInt:
    case at::kLong:
    case at::kByte: return true;
    default: return false;
  }
}

uintptr_t address_of(const Tensor& x) { return reinterpret_cast<uintptr_t>(x.data_ptr()); }

/// Checks that `large` is size() times `small`, in the same dtype and memory, and that `small` is this rank's
/// piece of it or does not overlap it.
void check_pieces(const char* op, const char* large_name, const Tensor& large, const char* small_name,
                  const Tensor& small, const Communicator& group) {
  check_whole(op, large);
  check_whole(op, small);
  TYCHO_CHECK(
      large.numel() == small.numel() * group.size() && large.scalar_type() == small.scalar_type() &&
          large.device() == small.device(),
      "[parallel] {} over {} ranks: expected `{}` to be {} times `{}` in the same dtype and memory, got "
      "{} and {}",
      op, group.size(), large_name, group.size(), small_name, text_of(large), text_of(small));
  if (small.numel() == 0) return;
  const uintptr_t own_piece = address_of(large) + static_cast<uintptr_t>(group.rank()) * small.nbytes();
  const bool overlap = address_of(small) < address_of(large) + large.nbytes() &&
                       address_of(large) < address_of(small) + small.nbytes();
  TYCHO_CHECK(!overlap || address_of(small) == own_piece,
              "[parallel] {}: `{}` and `{}` overlap; expected separate memory, or `{}` as piece {} of `{}`",
              op, large_name, small_name, small_name, group.rank(), large_name);
}

}  // namespace

void check_whole(const char* op, const Tensor& x) {
  TYCHO_CHECK(x.defined(), "[parallel] {}: expected a tensor, got none", op);
  TYCHO_CHECK(x.is_contiguous(), "[parallel] {}: expected a contiguous tensor; copy it with contiguous()",
              op);
}

void check_sum(const char* op, const Tensor& x) {
  check_whole(op, x);
  TYCHO_CHECK(can_be_summed(x.scalar_type()),
              "[parallel] {}: expected fp32, fp64, bf16, int32, int64 or uint8, got {}", op,
              c10::toString(x.scalar_type()));
}

void check_all_gather(const Tensor& out, const Tensor& in, const Communicator& group) {
  check_pieces("all_gather", "out", out, "in", in, group);
}

void check_reduce_scatter(const Tensor& out, const Tensor& in, const Communicator& group) {
  check_pieces("reduce_scatter", "in", in, "out", out, group);
  check_sum("reduce_scatter", in);
}

void check_broadcast(const Tensor& x, int root, const Communicator& group) {
  check_whole("broadcast", x);
  TYCHO_CHECK(root >= 0 && root < group.size(), "[parallel] broadcast: expected a root from 0 to {}, got {}",
              group.size() - 1, root);
}

void check_message(const char* op, const Tensor& x, int peer, const Communicator& group) {
  check_whole(op, x);
  TYCHO_CHECK(peer != group.rank(), "[parallel] {}: expected another rank, got {}, which is this one{}", op,
              peer, group.size() == 1 ? "; the group has no other" : "");
  TYCHO_CHECK(peer >= 0 && peer < group.size(), "[parallel] {}: expected a rank from 0 to {}, got {}", op,
              group.size() - 1, peer);
}

}  // namespace tycho
