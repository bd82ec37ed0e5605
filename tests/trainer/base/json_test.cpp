// Canonical text, and parsing within limits.
#include "trainer/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <iterator>
#include <limits>
#include <random>

#include "trainer/base/error.h"
#include "trainer/base/json_items.h"

namespace tycho {
namespace {

std::string parse_message(const std::string& text) {
  try {
    parse_json(text, "test");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    return error.what();
  }
}

TEST(CanonicalJson, SortsKeysAndKeepsLists) {
  const Json json = parse_json(R"({ "b": [3, 1, {"z": null, "a": true}], "a": {}, "c": [] })", "test");
  EXPECT_EQ(canonical_json(json), R"({"a":{},"b":[3,1,{"a":true,"z":null}],"c":[]})");
}

TEST(CanonicalJson, PrintsShortestNumbersThatReadBackTheSame) {
  EXPECT_EQ(canonical_json({0.1, 1e-8, 6e-4, 2.0, 500000.0, -3, 1e20}),
            "[0.1,1e-08,0.0006,2,500000,-3,1e+20]");
  EXPECT_EQ(canonical_json(-0.0), "-0");
  for (double x : {1.0 / 3, 0.1 + 0.2, 5e-324, std::numeric_limits<double>::max(), 9007199254740993.0}) {
    EXPECT_EQ(parse_json(canonical_json(x), "test").get<double>(), x);
  }
}

TEST(CanonicalJson, EscapesText) {
  EXPECT_EQ(canonical_json("a\"b\\\n\x01\xc3\xa9"), "\"a\\\"b\\\\\\n\\u0001\xc3\xa9\"");
}

TEST(CanonicalJson, RefusesWhatJsonCannotSay) {
  EXPECT_THROW(canonical_json(std::nan("")), Error);
  EXPECT_THROW(canonical_json(HUGE_VAL), Error);
  EXPECT_THROW(canonical_json("\xff\xfe"), Error);
}

TEST(ParseJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b":1,"a":2})", "t").dump(), R"({"b":1,"a":2})");
}

TEST(ParseJson, SaysWhereTheTextBreaks) {
  EXPECT_EQ(parse_message(R"({"a": 1,})"), "[test] not valid JSON at byte 9 of 9");
  EXPECT_EQ(parse_message(""), "[test] not valid JSON at byte 1 of 0");
  EXPECT_EQ(parse_message("[1] x"), "[test] not valid JSON at byte 5 of 5");
  EXPECT_EQ(parse_message(std::string("{}\0junk", 7)), "[test] not valid JSON at byte 3 of 7");
  EXPECT_EQ(parse_message("[1e999]"), "[test] JSON with a number that is too large");
}

TEST(ParseJson, LimitsDepth) {
  EXPECT_EQ(parse_message(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(parse_message(std::string(65, '[') + std::string(65, ']')), "[test] JSON nested deeper than 64");
  EXPECT_NE(parse_message(std::string(1000000, '[')), "");
}

TEST(ParseJson, RefusesADuplicateKey) {
  EXPECT_EQ(parse_message(R"({"a": {"x": 1}, "b": {"x": 1}})"), "");
  EXPECT_EQ(parse_message(R"({"a": 1, "b": [{"c": 1}], "a": 2})"),
            "[test] the key \"a\" appears twice in one JSON object");
}

TEST(ParseJson, BuildsEveryKindOfValue) {
  const std::string text =
      R"({"a":[1,-2,2.5,"x\u00e9",true,false,null,[],{}],"b":{"c":{"d":[[1],[2]]}},"":18446744073709551615})";
  EXPECT_EQ(parse_json(text, "t"), Json::parse(text)) << "the library's own builder";
  EXPECT_EQ(parse_json("3", "t"), 3);
  EXPECT_EQ(parse_json("[[[]]]", "t").dump(), "[[[]]]");
}

TEST(ParseJson, TakesAndRefusesWhatTheLibraryDoes) {
  const std::vector<std::string> parts = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"a\"",
                                          "\"b\"",
                                          "\"\"",
                                          "\"\\u00e9\"",
                                          "\"é\"",
                                          "\"\\n\"",
                                          "\"\\\"\"",
                                          "1",
                                          "-0",
                                          "0",
                                          "-",
                                          "01",
                                          "-7",
                                          "1.5",
                                          "1.",
                                          ".5",
                                          "1e5",
                                          "2E-3",
                                          "1e",
                                          "1e-400",
                                          "-1e999",
                                          "true",
                                          "nul",
                                          "null",
                                          "false",
                                          " ",
                                          "\n\r\t",
                                          "\x0b",
                                          "\x01",
                                          "\xff",
                                          "\"\x01\"",
                                          "\"\xff\"",
                                          "\"\\x\"",
                                          "\"\\ud83d\"",
                                          "\"",
                                          "\xEF\xBB\xBF",
                                          "/**/",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "-9223372036854775808",
                                          "-9223372036854775809",
                                          "123456789012345678901234567890",
                                          "0.1",
                                          "4.9e-324",
                                          "\"\\ud83d\\ude00\"",
                                          "\x7f",
                                          "\"\x7f\""};
  std::mt19937_64 random(7);
  int64_t num_taken = 0;
  const auto compare = [&](const std::string& text) {
    const Json wanted = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    try {
      const Json read = parse_json(text, "t");
      ASSERT_FALSE(wanted.is_discarded()) << text;
      ASSERT_EQ(read, wanted) << text;
      ASSERT_EQ(read.type(), wanted.type()) << text;
      ++num_taken;
    } catch (const Error& error) {
      const bool is_twice = std::string(error.what()).find("appears twice") != std::string::npos;
      ASSERT_TRUE(wanted.is_discarded() || is_twice) << error.what() << " in " << text;
      ASSERT_NE(error.what(), std::string("[t] not valid JSON")) << "the place is missing in " << text;
    }
  };
  for (const std::string& one : parts) {
    compare(one);
    compare("[" + one + "]");
    compare("{\"a\":[" + one + ",1]," + one + ":2}");
  }
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (uint64_t left = random() % 9; left > 0; --left) text += parts[random() % parts.size()];
    compare(random() % 2 == 0 ? "[" + text + "]" : text);
  }
  EXPECT_GT(num_taken, 500);
}

/// Processor time of an action.
double seconds_of(const std::function<void()>& action) {
  const std::clock_t start = std::clock();
  action();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Builders that look through what they have built need minutes here.
TEST(ParseJson, TakesTimeInProportionToTheText) {
  constexpr int kMany = 200'000;
  std::string keys = "{", objects = "[";
  for (int i = 0; i < kMany; ++i) {
    keys += fmt::format("{}\"key {}\":{}", i == 0 ? "" : ",", i, i);
    objects += fmt::format("{}{{\"a\":{}}}", i == 0 ? "" : ",", i);
  }
  Json read;
  EXPECT_LT(seconds_of([&] { read = parse_json(keys + "}", "t"); }), 10);
  EXPECT_EQ(read.size(), kMany);
  EXPECT_EQ(std::prev(read.end()).key(), "key 199999");
  EXPECT_LT(seconds_of([&] { EXPECT_GT(canonical_json(read).size(), keys.size() / 2); }), 10);
  EXPECT_LT(seconds_of([&] { read = parse_json(objects + "]", "t"); }), 10);
  EXPECT_EQ(read.size(), kMany);
}

TEST(ParseJsonItems, HandsOutAListAndKeepsTheRest) {
  const std::string text = R"({"a":{"list":[1]},"list":[{"x":[1,2]},[3],4],"b":[5]})";
  std::vector<std::string> items;
  const auto take = [&](Json&& item) { items.push_back(item.dump()); };
  EXPECT_EQ(parse_json_items(text, "t", "list", take).dump(), R"({"a":{"list":[1]},"list":[],"b":[5]})");
  EXPECT_EQ(items, (std::vector<std::string>{R"({"x":[1,2]})", "[3]", "4"}));
  items.clear();
  EXPECT_EQ(parse_json_items(R"({"list":{"x":1}})", "t", "list", take).dump(), R"({"list":{"x":1}})")
      << "no list";
  EXPECT_EQ(parse_json_items(R"([[1]])", "t", "list", take).dump(), "[[1]]");
  EXPECT_TRUE(items.empty());
}

}  // namespace
}  // namespace tycho
