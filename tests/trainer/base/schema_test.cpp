// The schema of every type of field.
#include "trainer/base/schema.h"

#include <gtest/gtest.h>

#include "tests/trainer/base/sample_config.h"

namespace tycho {
namespace {

Json field(const std::string& name) {
  const Json schema = schema_of<sample::Sample>();
  for (const Json& description : schema["fields"]) {
    if (description["name"] == name) return description;
  }
  ADD_FAILURE() << "no field " << name;
  return {};
}

TEST(Schema, ListsFieldsInOrder) {
  const Json schema = schema_of<sample::Sample>();
  EXPECT_EQ(schema["type"], "struct");
  std::string names;
  for (const Json& description : schema["fields"]) names += description["name"].get<std::string>() + " ";
  EXPECT_EQ(names, "flag whole number text color length size maybe list map inner figure ");
}

TEST(Schema, DescribesSimpleTypes) {
  EXPECT_EQ(field("flag").dump(), R"({"name":"flag","help":"Yes or no.","type":"boolean","default":true})");
  EXPECT_EQ(field("whole").dump(), R"({"name":"whole","help":"A whole number.","type":"integer","min":0,)"
                                   R"("multiple_of":4,"default":8})");
  EXPECT_EQ(field("number").dump(),
            R"({"name":"number","help":"Any number.","type":"number","default":0.1})");
  EXPECT_EQ(field("text").dump(), R"({"name":"text","help":"Words.","type":"string","default":"hello"})");
  EXPECT_EQ(field("color").dump(),
            R"({"name":"color","help":"A color.","type":"enum","values":["red","green"],)"
            R"("default":"green"})");
}

TEST(Schema, DescribesUnits) {
  EXPECT_EQ(field("length").dump(), R"({"name":"length","help":"How long.","type":"duration","min":0,)"
                                    R"("min_exclusive":true,"units":["ba","tok"],"default":"10ba"})");
  EXPECT_EQ(field("size").dump(),
            R"({"name":"size","help":"How large.","type":"bytes","min":1024,"default":"64MiB"})");
  EXPECT_EQ(accepted_units(Rule{}), (std::vector<std::string>{"ba", "ep", "sp", "tok", "dur", "s"}));
}

TEST(Schema, DescribesContainersByTheirItems) {
  EXPECT_EQ(field("maybe").dump(), R"({"name":"maybe","help":"Perhaps a number.","type":"integer","min":0,)"
                                   R"("min_exclusive":true,"optional":true,"default":null})");
  EXPECT_EQ(field("list").dump(),
            R"({"name":"list","help":"Numbers.","type":"list","item":{"type":"integer","min":1},)"
            R"("default":[1,2]})");
  EXPECT_EQ(field("map").dump(),
            R"({"name":"map","help":"Named numbers.","type":"map","item":{"type":"number",)"
            R"("max":100},"default":{"a":1.0}})");
}

TEST(Schema, DescribesStructs) {
  const Json inner = field("inner");
  EXPECT_EQ(inner["type"], "struct");
  EXPECT_EQ(inner["default"].dump(), R"({"x":0.25,"pair":[0.9,0.95]})");
  EXPECT_EQ(inner["fields"][1].dump(),
            R"({"name":"pair","help":"Two shares.","type":"list","item":{"type":"number",)"
            R"("min":0,"max":1,"max_exclusive":true},"length":2,"default":[0.9,0.95]})");
}

TEST(Schema, DescribesComponentsByKind) {
  const Json figure = field("figure");
  EXPECT_EQ(figure["type"], "component");
  EXPECT_EQ(figure["namespace"], "figure");
  EXPECT_EQ(figure["usual"], "circle");
  EXPECT_EQ(
      figure["kinds"].dump(),
      R"({"circle":{"help":"Round.","type":"struct","fields":[{"name":"radius","help":"Half the width.",)"
      R"("type":"number","min":0,"min_exclusive":true,"required":true}]},)"
      R"("square":{"help":"Four sides.","type":"struct","fields":[{"name":"side","help":"Length of a side.",)"
      R"("type":"integer","min":1,"max":10,"default":2}]}})");
}

}  // namespace
}  // namespace tycho
