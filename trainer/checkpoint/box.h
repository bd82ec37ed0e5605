// Boxes of a tensor: which elements a piece of it holds. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tycho {

/// The elements of a tensor with offsets[d] <= index[d] < offsets[d] + shape[d] in every dim d. Always stored
/// in row-major order.
struct Box {
  std::vector<int64_t> offsets, shape;
  bool operator==(const Box&) const = default;
};

Box whole_box(const std::vector<int64_t>& shape);
/// Returns the number of elements.
int64_t volume(const Box& box);
/// Returns "[0:4, 2:3]".
std::string box_text(const Box& box);
/// Returns true when the box has the dims of the tensor and is inside it.
bool lies_in(const Box& box, const std::vector<int64_t>& shape);
/// Returns the intersection of two boxes of one tensor; its volume is 0 when they do not meet.
Box common_box(const Box& a, const Box& b);
/// Returns elements [begin, end) of a tensor in row-major order as a short list of boxes, in that order.
std::vector<Box> boxes_of_range(const std::vector<int64_t>& shape, int64_t begin, int64_t end);
/// Returns true when the boxes hold each element of the tensor exactly once. Requires boxes inside the
/// tensor. Returns false for a cut tensor of more than 8 dims.
bool boxes_tile(const std::vector<int64_t>& shape, const std::vector<Box>& boxes);
/// Calls run(i, j, n) for the elements of `part`, which is inside both `from` and `to`: n consecutive
/// elements in both, starting at element i of `from` and element j of `to`.
void for_runs(const Box& part, const Box& from, const Box& to,
              const std::function<void(int64_t i, int64_t j, int64_t n)>& run);

}  // namespace tycho
