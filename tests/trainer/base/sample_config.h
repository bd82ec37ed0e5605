// A config with a field of every type, for the tests of readers and writers.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho::sample {

enum class Color { kRed, kGreen };
constexpr EnumNames<Color, 2> enum_names(Color) { return {{{"red", Color::kRed}, {"green", Color::kGreen}}}; }

struct Circle {
  static constexpr const char* kKind = "circle";
  static constexpr const char* kHelp = "Round.";
  double radius = 1.5;
  template <class Visitor>
  void fields(Visitor& v) {
    v("radius", radius, "Half the width.", positive, required);
  }
};

struct Square {
  static constexpr const char* kKind = "square";
  static constexpr const char* kHelp = "Four sides.";
  int64_t side = 2;
  template <class Visitor>
  void fields(Visitor& v) {
    v("side", side, "Length of a side.", in_range(1, 10));
  }
};

struct Figure : OneOf<Circle, Square> {
  static constexpr const char* kNamespace = "figure";
};

struct Inner {
  double x = 0.25;
  std::array<double, 2> pair = {0.9, 0.95};
  template <class Visitor>
  void fields(Visitor& v) {
    v("x", x, "A number.", at_most(3));
    v("pair", pair, "Two shares.", below(0, 1));
  }
};

struct Sample {
  bool flag = true;
  int64_t whole = 8;
  double number = 0.1;
  std::string text = "hello";
  Color color = Color::kGreen;
  Duration length = {10, DurationUnit::kBatch};
  Bytes size = {64 << 20};
  std::optional<int64_t> maybe;
  std::vector<int64_t> list = {1, 2};
  std::map<std::string, double> map = {{"a", 1.0}};
  Inner inner;
  Figure figure;

  template <class Visitor>
  void fields(Visitor& v) {
    v("flag", flag, "Yes or no.");
    v("whole", whole, "A whole number.", at_least(0), multiple_of(4));
    v("number", number, "Any number.");
    v("text", text, "Words.");
    v("color", color, "A color.");
    v("length", length, "How long.", units("ba tok"), positive);
    v("size", size, "How large.", at_least(1024));
    v("maybe", maybe, "Perhaps a number.", positive);
    v("list", list, "Numbers.", at_least(1));
    v("map", map, "Named numbers.", at_most(100));
    v("inner", inner, "A table.");
    v("figure", figure, "A component.");
  }
};

}  // namespace tycho::sample
