// Arithmetic on boxes of a tensor.
#include "trainer/checkpoint/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tycho {
namespace {

constexpr size_t kMostDims = 8;

int64_t product(const std::vector<int64_t>& shape, size_t first) {
  int64_t n = 1;
  for (size_t d = first; d < shape.size(); ++d) n *= shape[d];
  return n;
}

/// Cuts elements [begin, end) of the part of a tensor that `row` selects: row.offsets and row.shape are set
/// for the dims before `dim` and cover the whole of the later dims.
void add_boxes(const std::vector<int64_t>& shape, size_t dim, int64_t begin, int64_t end, Box row,
               std::vector<Box>& boxes) {
  if (begin == end) return;
  if (dim == shape.size()) return boxes.push_back(std::move(row));
  const int64_t inner = product(shape, dim + 1);
  const auto add_row = [&](int64_t index, int64_t from, int64_t to) {
    Box one = row;
    one.offsets[dim] = index, one.shape[dim] = 1;
    add_boxes(shape, dim + 1, from, to, std::move(one), boxes);
  };
  const int64_t first = begin / inner, head = begin % inner, tail = end % inner;
  if (head != 0) {
    const int64_t stop = std::min(inner, end - first * inner);
    add_row(first, head, stop);
    if (stop < inner) return;
  }
  const int64_t first_whole = first + (head != 0), num_whole = end / inner - first_whole;
  if (num_whole > 0) {
    Box rows = row;
    rows.offsets[dim] = first_whole, rows.shape[dim] = num_whole;
    boxes.push_back(std::move(rows));
  }
  if (tail != 0) add_row(end / inner, 0, tail);
}

int64_t index_in(const Box& box, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * box.shape[d] + at[d] - box.offsets[d];
  return index;
}

}  // namespace

Box whole_box(const std::vector<int64_t>& shape) { return {std::vector<int64_t>(shape.size(), 0), shape}; }

int64_t volume(const Box& box) { return product(box.shape, 0); }

std::string box_text(const Box& box) {
  std::string text;
  for (size_t d = 0; d < box.shape.size(); ++d)
    text += fmt::format("{}{}:{}", d == 0 ? "" : ", ", box.offsets[d], box.offsets[d] + box.shape[d]);
  return "[" + text + "]";
}

bool lies_in(const Box& box, const std::vector<int64_t>& shape) {
  if (box.offsets.size() != shape.size() || box.shape.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (box.offsets[d] < 0 || box.shape[d] < 0 || box.offsets[d] > shape[d] - box.shape[d]) return false;
  return true;
}

Box common_box(const Box& a, const Box& b) {
  Box both = a;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    both.offsets[d] = std::max(a.offsets[d], b.offsets[d]);
    const int64_t end = std::min(a.offsets[d] + a.shape[d], b.offsets[d] + b.shape[d]);
    both.shape[d] = std::max<int64_t>(end - both.offsets[d], 0);
  }
  return both;
}

std::vector<Box> boxes_of_range(const std::vector<int64_t>& shape, int64_t begin, int64_t end) {
  std::vector<Box> boxes;
  add_boxes(shape, 0, begin, end, whole_box(shape), boxes);
  return boxes;
}

// Boxes hold each element once when the number of boxes at an element is 1 everywhere, and 0 outside. A
// function of bounded support is known by its differences along all dims; those of a box are at its corners.
bool boxes_tile(const std::vector<int64_t>& shape, const std::vector<Box>& boxes) {
  const Box whole = whole_box(shape);
  if (volume(whole) == 0) return true;
  if (boxes.size() == 1) return boxes.front() == whole;
  if (shape.size() > kMostDims) return false;
  std::map<std::vector<int64_t>, int64_t> differences;
  const auto add_corners = [&](const Box& box, int64_t sign) {
    for (size_t corner = 0; corner < size_t{1} << shape.size(); ++corner) {
      std::vector<int64_t> at = box.offsets;
      int64_t value = sign;
      for (size_t d = 0; d < shape.size(); ++d)
        if (corner >> d & 1) at[d] += box.shape[d], value = -value;
      differences[std::move(at)] += value;
    }
  };
  for (const Box& box : boxes) add_corners(box, 1);
  add_corners(whole, -1);
  return std::all_of(differences.begin(), differences.end(), [](const auto& one) { return one.second == 0; });
}

void for_runs(const Box& part, const Box& from, const Box& to,
              const std::function<void(int64_t i, int64_t j, int64_t n)>& run) {
  if (volume(part) == 0) return;
  // Dims [outer, ...) of the part are neighbours in both boxes.
  size_t outer = part.shape.size();
  int64_t length = 1;
  while (outer > 0) {
    --outer;
    length *= part.shape[outer];
    if (part.shape[outer] != from.shape[outer] || part.shape[outer] != to.shape[outer]) break;
  }
  std::vector<int64_t> at = part.offsets;
  for (;;) {
    run(index_in(from, at), index_in(to, at), length);
    size_t d = outer;
    while (d > 0 && ++at[d - 1] == part.offsets[d - 1] + part.shape[d - 1])
      at[d - 1] = part.offsets[d - 1], --d;
    if (d == 0) return;
  }
}

}  // namespace tycho
