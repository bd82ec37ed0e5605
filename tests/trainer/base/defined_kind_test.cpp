// Kinds that recipes define: read and written as their base with a name and values of their own.
#include "trainer/base/defined_kind.h"

#include <gtest/gtest.h>

#include "trainer/base/json_reader.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/schema.h"

namespace tycho {
namespace {

struct Fixed {
  static constexpr const char* kKind = "fixed";
  static constexpr const char* kHelp = "Built in.";
  int64_t size = 1;
  template <class Visitor>
  void fields(Visitor& v) {
    v("size", size, "A size.");
  }
};

struct Open : DefinedKind {
  static constexpr const char* kKind = "open";
  static constexpr const char* kHelp = "A kind and a base.";
  int64_t every = 1;
  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every, "How often.", at_least(1));
  }
};

struct Template : Open {
  static constexpr const char* kKind = "template";
  static constexpr const char* kHelp = "A base only.";
  static constexpr bool kOnlyBase = true;
};

struct Part : OneOf<Fixed, Open, Template> {
  static constexpr const char* kNamespace = "part";
  const char* kind() const { return kind_name(value); }
};

struct Whole {
  Part part;
  template <class Visitor>
  void fields(Visitor& v) {
    v("part", part, "A part.");
  }
};

Part read(const std::string& part, std::vector<ConfigProblem>& problems) {
  return from_json<Whole>({{"part", parse_json(part, "test")}}, problems).part;
}

std::string part_problem(const std::string& part) {
  std::vector<ConfigProblem> problems;
  read(part, problems);
  return problems.size() == 1 ? problems[0].path + ": " + problems[0].message
                              : std::to_string(problems.size()) + " problems";
}

TEST(DefinedKind, IsReadAsItsBaseAndWrittenBack) {
  const std::string text = R"({"kind":"mine","base":"open","every":3,"limit":0.5,"names":["a"]})";
  std::vector<ConfigProblem> problems;
  const Part part = read(text, problems);
  ASSERT_TRUE(problems.empty());
  EXPECT_STREQ(part.kind(), "mine");
  ASSERT_TRUE(part.is<Open>());
  EXPECT_EQ(part.as<Open>().every, 3);
  EXPECT_EQ(part.as<Open>().values, parse_json(R"({"limit": 0.5, "names": ["a"]})", "test"));
  EXPECT_EQ(canonical_json(to_json(part)), canonical_json(parse_json(text, "test")));
}

TEST(DefinedKind, LeavesBuiltInKindsAsTheyAre) {
  std::vector<ConfigProblem> problems;
  const Part part = read(R"({"kind": "open", "every": 2})", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_STREQ(part.kind(), "open");
  EXPECT_EQ(to_json(part), parse_json(R"({"kind": "open", "every": 2})", "test"));
  EXPECT_EQ(part_problem(R"({"kind": "open", "evry": 2})"),
            "part.evry: unknown key; did you mean \"every\"?");
}

TEST(DefinedKind, RefusesWhatIsNoBase) {
  EXPECT_EQ(part_problem(R"({"kind": "mine"})"), "part.kind: expected one of fixed, open, got \"mine\"");
  EXPECT_EQ(part_problem(R"({"kind": "template"})"),
            "part.kind: expected one of fixed, open, got \"template\"");
  EXPECT_EQ(part_problem(R"({"kind": "mine", "base": "fixed"})"),
            "part.base: expected one of open, template, got \"fixed\"");
  EXPECT_EQ(part_problem(R"({"kind": "mine", "base": 3})"),
            "part.base: expected one of open, template, got 3");
  EXPECT_EQ(part_problem(R"({"kind": "mine", "base": "open", "every": 0})"),
            "part.every: expected a whole number >= 1, got 0");
}

TEST(DefinedKind, ABaseAloneIsNoKindOfTheSchema) {
  const Json component = schema_of<Whole>().at("fields").at(0);
  EXPECT_EQ(component.at("kinds").size(), 2u);
  EXPECT_TRUE(component.at("kinds").contains("open"));
  EXPECT_EQ(component.at("bases").size(), 1u);
  EXPECT_EQ(component.at("bases").at("template").at("fields").at(0).at("name"), "every");
}

}  // namespace
}  // namespace tycho
