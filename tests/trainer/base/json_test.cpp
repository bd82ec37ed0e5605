// Canonical text, and parsing within limits.
#include "trainer/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/base/error.h"

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

}  // namespace
}  // namespace tycho
