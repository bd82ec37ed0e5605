// Every type of field as JSON.
#include "trainer/base/json_writer.h"

#include <gtest/gtest.h>

#include "tests/trainer/base/sample_config.h"

namespace tycho {
namespace {

TEST(JsonWriter, WritesEveryTypeOfField) {
  EXPECT_EQ(
      to_json(sample::Sample{}).dump(),
      R"({"flag":true,"whole":8,"number":0.1,"text":"hello","color":"green","length":"10ba","size":"64MiB",)"
      R"("maybe":null,"list":[1,2],"map":{"a":1.0},"inner":{"x":0.25,"pair":[0.9,0.95]},)"
      R"("figure":{"kind":"circle","radius":1.5}})");
}

TEST(JsonWriter, WritesTheChosenKindAndPresentOptionals) {
  sample::Sample value;
  value.figure.value = sample::Square{7};
  value.maybe = 3;
  value.list.clear();
  value.map.clear();
  const Json json = to_json(value);
  EXPECT_EQ(json["figure"].dump(), R"({"kind":"square","side":7})");
  EXPECT_EQ(json["maybe"], 3);
  EXPECT_EQ(json["list"].dump(), "[]");
  EXPECT_EQ(json["map"].dump(), "{}");
}

TEST(JsonWriter, KeepsLargeIntegersExact) {
  sample::Sample value;
  value.whole = 9007199254740992;
  EXPECT_EQ(to_json(value)["whole"].dump(), "9007199254740992");
}

}  // namespace
}  // namespace tycho
