// Where parameters lie in a unit, and what of them lies in a part of it.
#include "trainer/layout/unit_layout.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

UnitSpec unit() {
  UnitSpec unit{.name = "unit"};
  unit.params = {{"norm", {6}}, {"q", {4, 6}}, {"k", {2, 6}}, {"bias", {3}}};
  unit.stacks = {{1, 2}};
  return unit;
}

TEST(UnitLayout, ParametersLieOneAfterTheOtherAndStacksOverThem) {
  const UnitLayout layout(unit());
  EXPECT_EQ(layout.numel(), 45);
  ASSERT_EQ(layout.extents().size(), 4u);
  int64_t at = 0;
  for (const Extent& e : layout.extents()) {
    EXPECT_EQ(e.begin, at);
    EXPECT_TRUE(e.is_whole());
    EXPECT_EQ(e.spec, &layout.spec().params[e.param]);
    at = e.end;
  }
  ASSERT_EQ(layout.views().size(), 5u);
  EXPECT_EQ(layout.views()[2].begin, 30);
  EXPECT_EQ(layout.views()[4].begin, 6);
  EXPECT_EQ(layout.views()[4].shape, (Shape{6, 6}));
}

TEST(UnitLayout, CopiesKeepTheSpecsThatExtentsPointTo) {
  std::vector<Extent> extents;
  UnitLayout copy = [&] {
    const UnitLayout layout(unit());
    extents = layout.extents_in(0, 10);
    return UnitLayout(layout);
  }();
  EXPECT_EQ(extents[1].spec->name, "q");
  EXPECT_EQ(extents[1].spec, copy.extents()[1].spec);
}

/// Every cut into two, against a list of the elements one by one.
TEST(UnitLayout, PartsTileTheUnit) {
  const UnitLayout layout(unit());
  using Element = std::pair<std::string, int64_t>;  // parameter, element of it
  const auto elements = [](const std::vector<Extent>& extents, int64_t size) {
    std::vector<Element> list(static_cast<size_t>(size), {"", -1});
    for (const Extent& e : extents)
      for (int64_t i = 0; i < e.size(); ++i)
        list[static_cast<size_t>(e.begin + i)] = {e.spec->name, e.first + i};
    return list;
  };
  std::vector<Element> all;
  for (const ParamSpec& param : layout.spec().params)
    for (int64_t i = 0; i < numel(param.shape); ++i) all.emplace_back(param.name, i);
  for (int64_t cut = 0; cut <= 45; ++cut) {
    std::vector<Element> both = elements(layout.extents_in(0, cut), cut);
    const std::vector<Element> rest = elements(layout.extents_in(cut, 45), 45 - cut);
    both.insert(both.end(), rest.begin(), rest.end());
    EXPECT_EQ(both, all) << cut;
  }
  EXPECT_TRUE(layout.extents_in(7, 7).empty());
  EXPECT_FALSE(layout.extents_in(0, 10)[1].is_whole());
}

TEST(UnitLayout, ZeroRowsTakeRoomAndAreInNoExtent) {
  UnitSpec padded = unit();
  padded.params[1].zero_rows = 3;
  padded.stacks = {{1, 1}};
  const UnitLayout layout(padded);
  EXPECT_EQ(layout.numel(), 45 + 3 * 6);
  EXPECT_EQ(layout.numel(), padded.numel());
  EXPECT_EQ(layout.extents()[1].end, 30);
  EXPECT_EQ(layout.extents()[2].begin, 48);
  EXPECT_EQ(layout.views()[1].shape, (Shape{4, 6}));
  EXPECT_EQ(padded.padded_view(1), 4u);
  EXPECT_EQ(padded.padded_view(2), 2u);
  EXPECT_EQ(layout.views()[4].begin, 6);
  EXPECT_EQ(layout.views()[4].shape, (Shape{7, 6}));
  const std::vector<Extent> parts = layout.extents_in(35, 50);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].begin, 13);
  EXPECT_EQ(parts[0].size(), 2);
  EXPECT_TRUE(layout.extents_in(31, 47).empty());
}

TEST(UnitLayout, RefusesWhatDoesNotFit) {
  const UnitLayout layout(unit());
  EXPECT_THROW(layout.extents_in(0, 46), Error);
  EXPECT_THROW(layout.extents_in(5, 4), Error);
  EXPECT_THROW(layout.extents_in(-1, 4), Error);
  UnitSpec wrong = unit();
  wrong.params[2].shape = {2, 5};
  EXPECT_THROW(UnitLayout{wrong}, Error);
}

}  // namespace
}  // namespace tycho
