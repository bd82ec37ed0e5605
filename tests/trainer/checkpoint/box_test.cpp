// Boxes against a list of every element.
#include "trainer/checkpoint/box.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace tycho {
namespace {

using Shape = std::vector<int64_t>;

/// Row-major numbers of the elements of a box, in its order.
std::vector<int64_t> elements(const Shape& shape, const Box& box) {
  std::vector<int64_t> list;
  const int64_t all = volume(whole_box(shape));
  for (int64_t i = 0; i < all; ++i) {
    bool inside = true;
    for (int64_t rest = i, d = std::ssize(shape) - 1; d >= 0; rest /= shape[static_cast<size_t>(d)], --d) {
      const auto dim = static_cast<size_t>(d);
      const int64_t at = rest % shape[dim];
      inside = inside && at >= box.offsets[dim] && at < box.offsets[dim] + box.shape[dim];
    }
    if (inside) list.push_back(i);
  }
  return list;
}

TEST(Box, PrintsItsRange) {
  const Box box = {{2, 0}, {3, 4}};
  EXPECT_EQ(volume(box), 12);
  EXPECT_EQ(box_text(box), "[2:5, 0:4]");
  EXPECT_EQ(box_text(whole_box({})), "[]");
  EXPECT_EQ(volume(whole_box({})), 1);
  EXPECT_TRUE(lies_in(box, {5, 4}));
  EXPECT_FALSE(lies_in(box, {4, 4}));
  EXPECT_FALSE(lies_in(box, {5, 4, 1}));
  EXPECT_FALSE(lies_in({{-1}, {2}}, {5}));
  EXPECT_FALSE(lies_in({{INT64_MAX}, {2}}, {5}));
  EXPECT_EQ(common_box(box, {{4, 1}, {9, 2}}), (Box{{4, 1}, {1, 2}}));
  EXPECT_EQ(volume(common_box(box, {{5, 0}, {2, 4}})), 0);
}

TEST(Box, RangesOfElementsAreFewBoxesInOrder) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{4, 5}, Shape{3, 1, 4}, Shape{2, 3, 4}, Shape{1, 1}}) {
    const int64_t all = volume(whole_box(shape));
    for (int64_t begin = 0; begin <= all; ++begin)
      for (int64_t end = begin; end <= all; ++end) {
        std::vector<int64_t> found, wanted(static_cast<size_t>(end - begin));
        std::iota(wanted.begin(), wanted.end(), begin);
        const std::vector<Box> boxes = boxes_of_range(shape, begin, end);
        for (const Box& box : boxes) {
          EXPECT_TRUE(lies_in(box, shape));
          const std::vector<int64_t> some = elements(shape, box);
          found.insert(found.end(), some.begin(), some.end());
        }
        EXPECT_EQ(found, wanted);
        EXPECT_LE(std::ssize(boxes), std::max<int64_t>(2 * std::ssize(shape) - 1, 1));
        if (begin == 0 && end == all) {
          EXPECT_EQ(boxes, std::vector<Box>{whole_box(shape)});
        }
      }
  }
}

TEST(Box, TilesHoldEveryElementOnce) {
  std::mt19937 random(5);
  const Shape shape = {3, 4, 2};
  int tiles = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    // Cuts of the range, of which some boxes are then lost, doubled or moved.
    const auto cut = static_cast<int64_t>(random() % 25), other = static_cast<int64_t>(random() % 25);
    std::vector<Box> boxes;
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, std::min(cut, other)),
                                     {std::min(cut, other), std::max(cut, other)},
                                     {std::max(cut, other), 24}})
      for (const Box& box : boxes_of_range(shape, begin, end)) boxes.push_back(box);
    std::shuffle(boxes.begin(), boxes.end(), random);
    if (random() % 3 == 0) boxes.pop_back();
    if (random() % 3 == 0 && !boxes.empty()) boxes.push_back(boxes.front());
    if (random() % 3 == 0 && !boxes.empty()) {
      Box moved = boxes.back();
      moved.offsets[random() % 3] += random() % 2 ? 1 : -1;
      if (lies_in(moved, shape)) boxes.back() = moved;
    }
    std::vector<int64_t> held;
    for (const Box& box : boxes) {
      const std::vector<int64_t> some = elements(shape, box);
      held.insert(held.end(), some.begin(), some.end());
    }
    std::sort(held.begin(), held.end());
    std::vector<int64_t> all(24);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(boxes_tile(shape, boxes), held == all);
    tiles += held == all;
  }
  EXPECT_GT(tiles, 500);
  EXPECT_LT(tiles, 2500);
}

TEST(Box, TilesOfUnusualShapes) {
  EXPECT_TRUE(boxes_tile({}, {whole_box({})}));
  EXPECT_FALSE(boxes_tile({}, {whole_box({}), whole_box({})}));
  EXPECT_FALSE(boxes_tile({}, {}));
  EXPECT_TRUE(boxes_tile({0, 3}, {}));
  EXPECT_TRUE(boxes_tile({5}, {{{0}, {5}}, {{2}, {0}}}));
  const Shape deep(9, 1);
  EXPECT_TRUE(boxes_tile(deep, {whole_box(deep)}));
  EXPECT_FALSE(boxes_tile(deep, {whole_box(deep), {Shape(9, 0), Shape(9, 0)}}));
}

TEST(Box, RunsCopyABoxFromOneBoxIntoAnother) {
  std::mt19937 random(6);
  for (const Shape& shape : {Shape{}, Shape{9}, Shape{4, 6}, Shape{3, 4, 5}}) {
    const auto random_box = [&] {
      Box box = whole_box(shape);
      for (size_t d = 0; d < shape.size(); ++d) {
        box.offsets[d] = static_cast<int64_t>(random()) % shape[d];
        box.shape[d] = 1 + static_cast<int64_t>(random()) % (shape[d] - box.offsets[d]);
      }
      return box;
    };
    for (int trial = 0; trial < 200; ++trial) {
      const Box from = random_box(), to = random_box(), part = common_box(from, to);
      const std::vector<int64_t> stored = elements(shape, from), wanted = elements(shape, part);
      std::vector<int64_t> room(static_cast<size_t>(volume(to)), -1);
      for_runs(part, from, to, [&](int64_t i, int64_t j, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
          EXPECT_EQ(room.at(static_cast<size_t>(j + k)), -1);
          room[static_cast<size_t>(j + k)] = stored.at(static_cast<size_t>(i + k));
        }
      });
      const std::vector<int64_t> places = elements(shape, to);
      std::vector<int64_t> expected;
      for (const int64_t place : places)
        expected.push_back(std::count(wanted.begin(), wanted.end(), place) > 0 ? place : -1);
      EXPECT_EQ(room, expected);
    }
    int runs = 0;
    for_runs(whole_box(shape), whole_box(shape), whole_box(shape),
             [&](int64_t, int64_t, int64_t) { ++runs; });
    EXPECT_EQ(runs, 1);
  }
}

}  // namespace
}  // namespace tycho
