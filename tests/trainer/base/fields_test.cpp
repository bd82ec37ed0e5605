// Rules, and how they combine.
#include "trainer/base/fields.h"

#include <gtest/gtest.h>

#include "tests/trainer/base/sample_config.h"

namespace tycho {
namespace {

/// Remembers the merged rule of each field.
struct RuleCollector : FieldVisitor<RuleCollector> {
  std::map<std::string, Rule> rules;
  template <class T>
  void field(const char* name, T&, const char*, const Rule& rule) {
    rules[name] = rule;
  }
};

TEST(Rule, CombineByListing) {
  RuleCollector collector;
  sample::Sample value;
  value.fields(collector);
  EXPECT_EQ(collector.rules["whole"].min, 0);
  EXPECT_EQ(collector.rules["whole"].multiple_of, 4);
  EXPECT_STREQ(collector.rules["length"].units, "ba tok");
  EXPECT_TRUE(collector.rules["length"].min_exclusive);
  EXPECT_FALSE(collector.rules["flag"].min.has_value());
}

TEST(Rule, TheLastOneWins) {
  const Rule rule = combine({positive, at_least(2), below(0, 5), at_most(4)});
  EXPECT_EQ(rule.min, 0);
  EXPECT_FALSE(rule.min_exclusive);
  EXPECT_EQ(rule.max, 4);
  EXPECT_FALSE(rule.max_exclusive);
  EXPECT_TRUE(combine({required, positive}).required);
}

TEST(OneOf, KnowsItsKind) {
  sample::Figure figure;
  EXPECT_STREQ(figure.kind(), "circle");
  figure.value = sample::Square{4};
  EXPECT_STREQ(figure.kind(), "square");
  EXPECT_TRUE(figure.is<sample::Square>());
  EXPECT_FALSE(figure.is<sample::Circle>());
  EXPECT_EQ(figure.as<sample::Square>().side, 4);
}

}  // namespace
}  // namespace tycho
