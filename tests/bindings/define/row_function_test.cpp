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

}  // namespace
}  // namespace tycho
