// Boxes of a tensor: which elements a piece of it holds. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tycho {

/// The elements of a tensor with offsets[d] <= index[d] < offsets[d] + shape[d] in every dim d. They lie in
/// row-major order wherever they are stored.
struct Box {
  std::vector<int64_t> offsets, shape;
  bool operator==(const Box&) const = default;
};

Box whole_box(const std::vector<int64_t>& shape);
/// Elements of a box.
int64_t volume(const Box& box);
/// "[0:4, 2:3]"
std::string box_text(const Box& box);
/// Whether it has the dims of the tensor and lies inside.
bool lies_in(const Box& box, const std::vector<int64_t>& shape);
/// What two boxes of one tensor have in common; of volume 0 when that is nothing.
Box common_box(const Box& a, const Box& b);
/// Elements [begin, end) of a tensor in row-major order, as few boxes, in that order.
std::vector<Box> boxes_of_range(const std::vector<int64_t>& shape, int64_t begin, int64_t end);
/// Whether the boxes, all of which lie in the tensor, hold each of its elements exactly once. A tensor of
/// more than 8 dims cannot be cut.
bool boxes_tile(const std::vector<int64_t>& shape, const std::vector<Box>& boxes);
/// Calls run(i, j, n) for the elements of `part`, which lies in `from` and in `to`: n neighbours in both,
/// beginning at element i of `from` and element j of `to`.
void for_runs(const Box& part, const Box& from, const Box& to,
              const std::function<void(int64_t i, int64_t j, int64_t n)>& run);

}  // namespace tycho
