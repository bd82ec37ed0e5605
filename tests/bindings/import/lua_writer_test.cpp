// Keys, paths and texts as Lua reads them.
#include "bindings/import/lua_writer.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(LuaWriter, KeysThatAreNoNamesAreQuoted) {
  EXPECT_EQ(lua_key("lr"), "lr");
  EXPECT_EQ(lua_key("near-again"), "[\"near-again\"]");
  for (const char* word :
       {"and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
        "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"})
    EXPECT_EQ(lua_key(word), "[\"" + std::string(word) + "\"]");
}

TEST(LuaWriter, PathsLeadToKeysOfAnyName) {
  EXPECT_EQ(lua_path("r", "optimizer.lr"), "r.optimizer.lr");
  EXPECT_EQ(lua_path("r", "eval_data.end.split"), "r.eval_data[\"end\"].split");
  EXPECT_EQ(lua_path("r", "callbacks.my-own.repeat"), "r.callbacks[\"my-own\"][\"repeat\"]");
}

TEST(LuaWriter, FieldsOfAnyNameAreAnInsideOfATable) {
  const Json fields = {{"repeat", 1.5}, {"end", {{"until", true}}}, {"kind", "x"}, {"same", 1}};
  EXPECT_EQ(lua_fields(fields, {{"same", 1}}), "[\"repeat\"] = 1.5, [\"end\"] = { [\"until\"] = true }");
}

}  // namespace
}  // namespace tycho
