// JSON Schema of every type of field: what a reader accepts is accepted, what it refuses is refused.
#include "trainer/recipe/json_schema.h"

#include <gtest/gtest.h>

#include "tests/trainer/base/sample_config.h"
#include "tests/trainer/recipe/json_schema_checker.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/schema.h"

namespace tycho {
namespace {

const Json& sample_schema() {
  static const Json schema = json_schema(schema_of<sample::Sample>(), "Sample");
  return schema;
}

bool reader_accepts(const Json& value) {
  std::vector<ConfigProblem> problems;
  from_json<sample::Sample>(value, problems);
  return problems.empty();
}
bool schema_accepts(const Json& value) {
  return JsonSchemaChecker(sample_schema()).problems_of(value).empty();
}

Json valid() {
  sample::Sample config;
  return to_json(config);
}

TEST(JsonSchema, AcceptsAndRefusesWhatAReaderDoes) {
  EXPECT_TRUE(reader_accepts(valid()));
  EXPECT_TRUE(schema_accepts(valid()));
  const std::pair<const char*, Json> changes[] = {{"/flag", "yes"},
                                                  {"/flag", false},
                                                  {"/whole", 6},
                                                  {"/whole", 12},
                                                  {"/whole", -4},
                                                  {"/whole", 4.5},
                                                  {"/number", "0.1"},
                                                  {"/number", -1e30},
                                                  {"/text", 3},
                                                  {"/color", "blue"},
                                                  {"/color", "red"},
                                                  {"/length", "10ep"},
                                                  {"/length", "3e3tok"},
                                                  {"/length", "2.5 ba"},
                                                  {"/length", "-1ba"},
                                                  {"/length", 10},
                                                  {"/length", "ba"},
                                                  {"/size", "2GB"},
                                                  {"/size", "4096"},
                                                  {"/size", "many"},
                                                  {"/size", "-1MiB"},
                                                  {"/maybe", nullptr},
                                                  {"/maybe", 0},
                                                  {"/maybe", 7},
                                                  {"/list", {1, 0}},
                                                  {"/list", {1, "a"}},
                                                  {"/list", Json::array()},
                                                  {"/list", 3},
                                                  {"/map", {{"b", 2}}},
                                                  {"/map", {{"b", "2"}}},
                                                  {"/inner/x", 4},
                                                  {"/inner/x", 3},
                                                  {"/inner/pair", {0.5}},
                                                  {"/inner/pair", {0.5, 1}},
                                                  {"/inner/pair", {0, 0.5}},
                                                  {"/inner/y", 1},
                                                  {"/figure/kind", "ring"},
                                                  {"/figure/radius", 0},
                                                  {"/figure/side", 2},
                                                  {"/other", 1},
                                                  {"/figure", {{"kind", "square"}, {"side", 11}}},
                                                  {"/figure", {{"kind", "square"}, {"side", 10}}},
                                                  {"/figure", {{"radius", 1}}},
                                                  {"/figure", "circle"}};
  int num_refused = 0;
  for (const auto& [path, value] : changes) {
    Json changed = valid();
    changed[Json::json_pointer(path)] = value;
    EXPECT_EQ(schema_accepts(changed), reader_accepts(changed)) << path << " = " << value.dump();
    num_refused += reader_accepts(changed) ? 0 : 1;
  }
  EXPECT_GT(num_refused, 20);
}

TEST(JsonSchema, SaysWhatAFieldIs) {
  const Json& flag = sample_schema().at("properties").at("flag");
  EXPECT_EQ(flag.at("description"), "Yes or no.");
  EXPECT_EQ(flag.at("default"), true);
  EXPECT_EQ(sample_schema().at("title"), "Sample");
  EXPECT_EQ(sample_schema().at("$schema"), "https://json-schema.org/draft/2020-12/schema");
}

}  // namespace
}  // namespace tycho
