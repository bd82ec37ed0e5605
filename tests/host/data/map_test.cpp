// tycho data map: rows of finetuning data made by a Lua function, and trained on.
#include "tests/host/shell.h"

namespace tycho {
namespace {

class DataMapTest : public ShellTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
};

TEST_F(DataMapTest, WritesTheRowsThatTheFunctionMakes) {
  write("rows.lua", R"(
local name = require "names"
return function(row)
  if row.score < 3 then return nil end
  if row.pairs then
    local rows = {}
    for i, pair in ipairs(row.pairs) do rows[i] = { prompt = pair[1], response = pair[2] } end
    return rows
  end
  return { messages = { { role = "user", content = name .. row.q }, { role = "assistant", content = row.a } } }
end
)");
  write("names.lua", "return \"Ann: \"\n");
  write("raw.jsonl",
        "{\"q\": \"2 + 2?\", \"a\": \"4\", \"score\": 5}\n\n{\"q\": \"bad\", \"a\": \"\", \"score\": 1}\n"
        "{\"pairs\": [[\"a\", \"b\"], [\"caf\u00e9\", \"d\"]], \"score\": 3}\n");
  const Outcome made =
      here("gzip -k raw.jsonl; tycho data map rows.lua raw.jsonl raw.jsonl.gz --out sft.jsonl");
  EXPECT_EQ(made.code, 0) << made.output;
  EXPECT_CONTAINS(made.output, "sft.jsonl: 6 rows of 6, 2 left out");
  const std::string once =
      "{\"messages\":[{\"content\":\"Ann: 2 + "
      "2?\",\"role\":\"user\"},{\"content\":\"4\",\"role\":\"assistant\"}]}\n"
      "{\"prompt\":\"a\",\"response\":\"b\"}\n{\"prompt\":\"caf\u00e9\",\"response\":\"d\"}\n";
  EXPECT_EQ(here("cat sft.jsonl").output, once + once);
  EXPECT_EQ(here("ls sft.jsonl.part").code, 2);
  const Outcome json = here("tycho data map rows.lua raw.jsonl --out again.jsonl --json");
  EXPECT_CONTAINS(json.output, "\"dropped\": 1");
  const Outcome converted = here("tycho data convert again.jsonl --chat --out talks");
  EXPECT_EQ(converted.code, 12) << converted.output;  // conversations or prompts, not both
}

TEST_F(DataMapTest, NamesTheRowAndLeavesNothingHalfWritten) {
  write("raw.jsonl", "{\"q\": 1}\n{\"q\": 2}\n");
  const auto mapped = [&](const std::string& function) {
    write("rows.lua", function);
    return here("tycho data map rows.lua raw.jsonl --out sft.jsonl");
  };
  const Outcome failed =
      mapped("return function(row) if row.q == 2 then error(\"no answer\") end return row end");
  EXPECT_EQ(failed.code, 12);
  EXPECT_CONTAINS(failed.output, "[raw.jsonl:2] rows.lua failed: ");
  EXPECT_CONTAINS(failed.output, "no answer");
  EXPECT_EQ(here("ls sft.jsonl sft.jsonl.part").code, 2);
  EXPECT_CONTAINS(mapped("return function(row) return 7 end").output,
                  "[raw.jsonl:1] expected a row, a list of rows, or nil from rows.lua, got 7");
  EXPECT_CONTAINS(mapped("return function(row) return { row, 7 } end").output, "got 7");
  EXPECT_CONTAINS(mapped("return function(row) return { f = print } end").output,
                  "[raw.jsonl:1] rows.lua failed");
  EXPECT_CONTAINS(mapped("return { }").output, "expected a file that returns a function, got table");
  EXPECT_CONTAINS(mapped("return function(").output, "cannot be loaded: rows.lua:1:");
  EXPECT_EQ(mapped("return function(row) while true do end end").code, 12);
  write("raw.jsonl", "{\"q\": 1}\n{\"q\": \n");
  const Outcome cut = mapped("return function(row) return row end");
  EXPECT_EQ(cut.code, 12);
  EXPECT_CONTAINS(cut.output, "[raw.jsonl:2] not valid JSON at byte ");
  const Outcome skipped = here("tycho data map rows.lua raw.jsonl --out sft.jsonl --bad-rows skip");
  EXPECT_EQ(skipped.code, 0) << skipped.output;
  EXPECT_CONTAINS(skipped.output, "[raw.jsonl:2]");
  EXPECT_CONTAINS(skipped.output, "sft.jsonl: 1 rows of 2, 0 left out");
  EXPECT_EQ(here("tycho data map rows.lua --out x.jsonl").code, 2);
  EXPECT_EQ(here("tycho data map rows.lua raw.jsonl").code, 2);
  EXPECT_EQ(here("tycho data map rows.lua nowhere.jsonl --out x.jsonl").code, 12);
}

}  // namespace
}  // namespace tycho
