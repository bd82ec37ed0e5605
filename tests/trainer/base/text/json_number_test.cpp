// Numbers that JSON has no form for.
#include "trainer/base/text/json_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tycho {
namespace {

TEST(JsonNumber, WhatIsNotFiniteIsNullWithItsTextBesideIt) {
  Json object = {{"step", 3}};
  set_number(object, "loss", 2.5);
  EXPECT_EQ(object.dump(), R"({"step":3,"loss":2.5})");
  set_number(object, "ppl", INFINITY);
  set_number(object, "low", -INFINITY);
  set_number(object, "grad", -NAN);
  EXPECT_EQ(object.dump(),
            R"({"step":3,"loss":2.5,"ppl":null,"not_finite":{"ppl":"inf","low":"-inf","grad":"nan"},)"
            R"("low":null,"grad":null})");
  const Json read = parse_json(canonical_json(object), "test");
  EXPECT_EQ(number_in(read, "step"), 3);
  EXPECT_EQ(number_in(read, "loss"), 2.5);
  EXPECT_EQ(number_in(read, "ppl"), INFINITY);
  EXPECT_EQ(number_in(read, "low"), -INFINITY);
  EXPECT_TRUE(std::isnan(number_in(read, "grad").value()));
}

TEST(JsonNumber, NullAloneAndOtherValuesAreNoNumbers) {
  for (const char* text :
       {R"({})", R"({"x": null})", R"({"x": "3"})", R"({"x": null, "not_finite": "x"})",
        R"({"x": null, "not_finite": {"y": "inf"}})", R"({"x": null, "not_finite": {"x": 3}})",
        R"({"x": null, "not_finite": {"x": "much"}})"})
    EXPECT_FALSE(number_in(Json::parse(std::string(text)), "x")) << text;
}

}  // namespace
}  // namespace tycho
