// Rows in and out of a Lua function.
#include "bindings/define/row_function.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

class RowFunctionTest : public testing::Test {
 protected:
  RowFunction load(const std::string& text) const {
    std::ofstream(temp_ / "rows.lua") << text;
    return RowFunction(temp_ / "rows.lua");
  }
  TempDir temp_;
};

TEST_F(RowFunctionTest, EveryValueOfJsonPassesThroughUnchanged) {
  RowFunction same = load("return function(row) return row end");
  // Keys come back sorted.
  const Json row = Json::parse(
      R"({"b": false, "big": 9007199254740991, "i": -3, "list": [1, [], {}], "n": null, "o": {"k": ["v"]},)"
      R"( "s": "é\n", "x": 0.5})");
  EXPECT_EQ(same(row, "f:1"), std::vector<Json>{row});
}

TEST_F(RowFunctionTest, KeepsWhatTheFunctionKeepsFromRowToRow) {
  RowFunction count = load("local n = 0; return function() n = n + 1; return n % 2 == 0 and { n = n } end");
  EXPECT_TRUE(count(Json::object(), "f:1").empty());
  EXPECT_EQ(count(Json::object(), "f:2"), std::vector<Json>{Json({{"n", 2}})});
  EXPECT_TRUE(load("return function() return {} end")(Json::object(), "f:1").size() <= 1);
}

TEST_F(RowFunctionTest, AnErrorBeginsWithThePlaceAndLaterRowsStillWork) {
  RowFunction picky = load("return function(row) assert(row.ok, 'not ok') return row end");
  try {
    picky(Json::object(), "f:9");
    ADD_FAILURE() << "did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_TRUE(std::string(error.what()).starts_with("[f:9] ")) << error.what();
    EXPECT_NE(std::string(error.what()).find("not ok"), std::string::npos) << error.what();
  }
  EXPECT_EQ(picky({{"ok", true}}, "f:10").size(), 1u);
}

TEST_F(RowFunctionTest, AMissingFieldIsNamedWithThoseOfTheRow) {
  RowFunction renamed = load("return function(row)\n  return { text = row.quesion .. row.answer }\nend");
  try {
    renamed({{"question", "a"}, {"answer", "b"}}, "f:1");
    ADD_FAILURE() << "did not fail";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("row has no quesion; did you mean  row.question?"),
              std::string::npos)
        << error.what();
  }
}

const char* const kComponent = R"(
local t = require "tycho"
return t.component { name = "long", kind = "rows", help = "Keeps long texts.",
  fields = { words = t.integer { default = 2, min = 1 } },
  rows = function(row, cfg)
    if select(2, row.text:gsub("%S+", "")) < cfg.words then return nil end
    return row
  end }
)";

TEST_F(RowFunctionTest, AComponentHasFields) {
  RowFunction two = load(kComponent);
  EXPECT_EQ(two({{"text", "a b"}}, "f:1").size(), 1u);
  EXPECT_EQ(two({{"text", "a"}}, "f:2").size(), 0u);
  RowFunction three(temp_ / "rows.lua", {{5, "words=3"}});
  EXPECT_EQ(three({{"text", "a b"}}, "f:1").size(), 0u);
}

TEST_F(RowFunctionTest, FieldsAreChecked) {
  load(kComponent);
  const auto report = [&](const std::string& text) {
    try {
      RowFunction(temp_ / "rows.lua", {{5, text}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(report("wrods=3").find("did you mean  map.words"), std::string::npos) << report("wrods=3");
  EXPECT_NE(report("words=0").find("expected integer >= 1"), std::string::npos) << report("words=0");
  std::ofstream(temp_ / "rows.lua") << "return function(row) return row end";
  EXPECT_NE(report("words=3").find("expected a component for words=3, got a file without t.component"),
            std::string::npos);
  std::ofstream(temp_ / "rows.lua") << "require 'tycho'.component { name = 'x', kind = 'rows' }";
  EXPECT_EQ(report("words=3").find("no error"), std::string::npos);
}

TEST_F(RowFunctionTest, AComponentMayHaveItsFieldsInTheFile) {
  std::string made = kComponent;
  made.replace(made.find("return t.component"), 6, "local long =");
  RowFunction three = load(made + "return long { words = 3 }\n");
  EXPECT_EQ(three({{"text", "a b c"}}, "f:1").size(), 1u);
  EXPECT_EQ(three({{"text", "a b"}}, "f:2").size(), 0u);
  RowFunction one(temp_ / "rows.lua", {{5, "words=1"}});
  EXPECT_EQ(one({{"text", "a"}}, "f:1").size(), 1u) << "an argument wins";
}

TEST_F(RowFunctionTest, AFileThatReturnsSomethingElseIsShownItself) {
  try {
    load(
        "local t = require 'tycho'\nlocal long = t.component { name = 'x', kind = 'rows', rows = "
        "function(row) return row end }\nreturn 3");
    ADD_FAILURE() << "it loaded";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("rows.lua:3: map = 3: expected "), std::string::npos) << said;
    EXPECT_NE(said.find("return 3"), std::string::npos) << said;
    EXPECT_EQ(said.find("tycho config"), std::string::npos) << said;
  }
}

TEST_F(RowFunctionTest, AComponentOfAnotherKindIsRefused) {
  try {
    load("local t = require 'tycho'\nreturn t.component { name = 'x', batch_end = function() end }");
    ADD_FAILURE() << "it loaded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("defines a component of kind = \"rows\""), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tycho
