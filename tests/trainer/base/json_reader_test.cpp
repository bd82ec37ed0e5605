// Reading JSON into configs: what is accepted, and every problem with its path and advice.
#include "trainer/base/json_reader.h"

#include <gtest/gtest.h>

#include "tests/trainer/base/sample_config.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/schema.h"

namespace tycho {
namespace {

using sample::Sample;

/// Problems as "path: message" lines.
std::vector<std::string> problems_of(const std::string& text) {
  std::vector<ConfigProblem> problems;
  from_json<Sample>(parse_json(text, "test"), problems);
  std::vector<std::string> lines;
  for (const ConfigProblem& problem : problems) lines.push_back(problem.path + ": " + problem.message);
  return lines;
}

std::string problem_of(const std::string& text) {
  const std::vector<std::string> lines = problems_of(text);
  return lines.size() == 1 ? lines[0] : "there are " + std::to_string(lines.size()) + " problems";
}

Sample read(const std::string& text) {
  std::vector<ConfigProblem> problems;
  Sample value = from_json<Sample>(parse_json(text, "test"), problems);
  for (const ConfigProblem& problem : problems) ADD_FAILURE() << problem.path << ": " << problem.message;
  return value;
}

TEST(JsonReader, ReadsBackWhatTheWriterWrote) {
  Sample value;
  value.flag = false;
  value.number = 1.0 / 3;
  value.maybe = 12;
  value.length = {2e9, DurationUnit::kToken};
  value.figure.value = sample::Square{3};
  value.map = {{"x", 0.5}, {"y z", -2}};
  const std::string text = canonical_json(to_json(value));
  EXPECT_EQ(canonical_json(to_json(read(text))), text);
}

TEST(JsonReader, KeepsDefaultsOfAbsentKeys) {
  EXPECT_EQ(to_json(read("{}")), to_json(Sample{}));
  EXPECT_EQ(read(R"({"inner": {"x": 1}})").inner.pair[1], 0.95);
  EXPECT_EQ(read(R"({"figure": {"kind": "square"}})").figure.as<sample::Square>().side, 2);
}

TEST(JsonReader, TakesWholeNumbersInAnySpelling) {
  EXPECT_EQ(read(R"({"whole": 1.2e3})").whole, 1200);
  EXPECT_EQ(read(R"({"whole": 9007199254740992})").whole, 9007199254740992);
  EXPECT_EQ(read(R"({"number": 3})").number, 3.0);
}

TEST(JsonReader, SetsAndUnsetsOptionals) {
  EXPECT_EQ(read(R"({"maybe": 5})").maybe, 5);
  EXPECT_EQ(read(R"({"maybe": null})").maybe, std::nullopt);
}

TEST(JsonReader, ChecksTypes) {
  EXPECT_EQ(problem_of(R"({"flag": 1})"), "flag: expected true or false, got 1");
  EXPECT_EQ(problem_of(R"({"whole": 8.5})"), "whole: expected a whole number >= 0, a multiple of 4, got 8.5");
  EXPECT_EQ(problem_of(R"({"whole": "8"})"),
            "whole: expected a whole number >= 0, a multiple of 4, got \"8\"");
  EXPECT_EQ(problem_of(R"({"whole": 1e17})"),
            "whole: expected a whole number >= 0, a multiple of 4, got 1e+17");
  EXPECT_EQ(problem_of(R"({"number": true})"), "number: expected a number, got true");
  EXPECT_EQ(problem_of(R"({"number": null})"), "number: expected a number, got null");
  EXPECT_EQ(problem_of(R"({"text": 3})"), "text: expected text, got 3");
  EXPECT_EQ(problem_of(R"({"list": 3})"), "list: expected a list, got 3");
  EXPECT_EQ(problem_of(R"({"map": []})"), "map: expected a table of named values, got []");
  EXPECT_EQ(problem_of(R"({"inner": 1})"), "inner: expected a table of fields, got 1");
  EXPECT_EQ(problem_of(R"({"figure": "circle"})"),
            "figure: expected a component with its kind, got \"circle\"");
  EXPECT_EQ(problem_of("[]"), ": expected a table of fields, got []");
}

TEST(JsonReader, ChecksRanges) {
  EXPECT_EQ(problem_of(R"({"whole": 6})"), "whole: expected a whole number >= 0, a multiple of 4, got 6");
  EXPECT_EQ(problem_of(R"({"whole": -4})"), "whole: expected a whole number >= 0, a multiple of 4, got -4");
  EXPECT_EQ(problem_of(R"({"maybe": 0})"), "maybe: expected a whole number > 0, got 0");
  EXPECT_EQ(problem_of(R"({"inner": {"x": 3.5}})"), "inner.x: expected a number <= 3, got 3.5");
  EXPECT_EQ(problem_of(R"({"figure": {"kind": "square", "side": 11}})"),
            "figure.side: expected a whole number >= 1 and <= 10, got 11");
  EXPECT_EQ(read(R"({"figure": {"kind": "square", "side": 10}})").figure.as<sample::Square>().side, 10);
  EXPECT_EQ(read(R"({"whole": 0})").whole, 0);
}

TEST(JsonReader, ChecksEveryItem) {
  EXPECT_EQ(problem_of(R"({"inner": {"pair": [0.5, 1]}})"),
            "inner.pair[2]: expected a number >= 0 and < 1, got 1");
  EXPECT_EQ(problem_of(R"({"inner": {"pair": [0.5]}})"),
            "inner.pair: expected a list of 2 values, got [0.5]");
  EXPECT_EQ(problem_of(R"({"list": [1, 0]})"), "list[2]: expected a whole number >= 1, got 0");
  EXPECT_EQ(problem_of(R"({"map": {"b": 101}})"), "map.b: expected a number <= 100, got 101");
}

TEST(JsonReader, ChecksUnits) {
  const std::string wanted = "length: expected a duration > 0 in ba, tok, such as \"1ba\", got ";
  EXPECT_EQ(problem_of(R"({"length": "10ep"})"), wanted + "\"10ep\"");
  EXPECT_EQ(problem_of(R"({"length": "0ba"})"), wanted + "\"0ba\"");
  EXPECT_EQ(problem_of(R"({"length": 10})"), wanted + "10");
  EXPECT_EQ(problem_of(R"({"length": "ten"})"), wanted + "\"ten\"");
  EXPECT_EQ(problem_of(R"({"size": "1KB"})"), "size: expected a size such as \"64MiB\" >= 1024, got \"1KB\"");
  EXPECT_EQ(problem_of(R"({"size": "64mb"})"),
            "size: expected a size with a unit out of B KB MB GB TB KiB MiB GiB TiB, such as \"64MiB\", got "
            "\"64mb\"");
}

struct LeftToTycho {
  std::optional<DurationOrAuto> length;
  template <class Visitor>
  void fields(Visitor& v) {
    v("length", length, "How long.", units("sp"), positive);
  }
};

TEST(JsonReader, TakesAutoInThePlaceOfADurationThatMayBeLeftToTycho) {
  std::vector<ConfigProblem> problems;
  const auto read = [&](const char* text) {
    problems.clear();
    return from_json<LeftToTycho>(parse_json(text, "test"), problems).length;
  };
  EXPECT_TRUE(read(R"({"length": "auto"})")->is_auto);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(read(R"({"length": "8sp"})"), DurationOrAuto(Duration{8, DurationUnit::kSample}));
  EXPECT_FALSE(read(R"({"length": null})").has_value());
  for (const char* wrong : {R"({"length": "automatic"})", R"({"length": "8ba"})", R"({"length": "0sp"})"}) {
    read(wrong);
    EXPECT_EQ(problems.size(), 1u) << wrong;
  }
  LeftToTycho open;
  open.length.emplace().is_auto = true;
  EXPECT_EQ(to_json(open).dump(), R"({"length":"auto"})");
  const Json described = schema_of<LeftToTycho>()["fields"][0];
  EXPECT_EQ(described.at("type"), "duration");
  EXPECT_EQ(described.at("word"), "auto");
}

struct RatioLeftToTycho {
  std::optional<NumberOrAuto> ratio;
  template <class Visitor>
  void fields(Visitor& v) {
    v("ratio", ratio, "How many.", at_least(1));
  }
};

TEST(JsonReader, TakesAutoInThePlaceOfANumberThatMayBeLeftToTycho) {
  std::vector<ConfigProblem> problems;
  const auto read = [&](const char* text) {
    problems.clear();
    return from_json<RatioLeftToTycho>(parse_json(text, "test"), problems);
  };
  EXPECT_TRUE(read(R"({"ratio": "auto"})").ratio->is_auto);
  EXPECT_EQ(read(R"({"ratio": 2.5})").ratio, (NumberOrAuto{2.5, false}));
  EXPECT_FALSE(read(R"({"ratio": null})").ratio.has_value());
  EXPECT_TRUE(problems.empty());
  for (const char* wrong : {R"({"ratio": "automatic"})", R"({"ratio": 0.5})", R"({"ratio": "2"})"}) {
    read(wrong);
    EXPECT_EQ(problems.size(), 1u) << wrong;
  }
  EXPECT_EQ(to_json(read(R"({"ratio": "auto"})")).dump(), R"({"ratio":"auto"})");
  EXPECT_EQ(to_json(read(R"({"ratio": 2.5})")).dump(), R"({"ratio":2.5})");
  const Json described = schema_of<RatioLeftToTycho>()["fields"][0];
  EXPECT_EQ(described.at("type"), "number");
  EXPECT_EQ(described.at("word"), "auto");
}

TEST(JsonReader, NamesTheNearestKeyKindAndValue) {
  EXPECT_EQ(problem_of(R"({"numbre": 1})"), "numbre: unknown key; did you mean \"number\"?");
  EXPECT_EQ(problem_of(R"({"inner": {"zzz": 1}})"), "inner.zzz: unknown key; known here: x, pair");
  EXPECT_EQ(problem_of(R"({"color": "gren"})"),
            "color: expected one of red, green, got \"gren\"; did you mean \"green\"?");
  EXPECT_EQ(problem_of(R"({"figure": {"kind": "sqare", "side": 1}})"),
            "figure.kind: expected one of circle, square, got \"sqare\"; did you mean \"square\"?");
  EXPECT_EQ(problem_of(R"({"figure": {"side": 1}})"),
            "figure.kind: expected one of circle, square, got null");
  EXPECT_EQ(problem_of(R"({"figure": {"kind": "circle", "radius": 1, "side": 1}})"),
            "figure.side: unknown key; known here: kind, radius");
}

TEST(JsonReader, ReportsMissingRequiredFields) {
  EXPECT_EQ(problem_of(R"({"figure": {"kind": "circle"}})"), "figure.radius: is required: set it");
}

TEST(JsonReader, ReportsAllProblemsAtOnceAndKeepsDefaultsThere) {
  const std::string text =
      R"({"flag": 0, "inner": {"x": "a", "y": 1}, "list": [0, 5, 0], "color": 7, "extra": 1})";
  EXPECT_EQ(problems_of(text).size(), 7u);
  std::vector<ConfigProblem> problems;
  const Sample value = from_json<Sample>(parse_json(text, "test"), problems);
  EXPECT_TRUE(value.flag);
  EXPECT_EQ(value.inner.x, 0.25);
}

TEST(JsonReader, CutsLongValuesInMessages) {
  EXPECT_LT(problem_of(R"({"flag": ")" + std::string(100000, 'x') + R"("})").size(), 120u);
}

}  // namespace
}  // namespace tycho
