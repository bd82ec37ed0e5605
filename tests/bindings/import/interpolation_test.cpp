// ${...} against OmegaConf itself, and what becomes of it in a recipe.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "bindings/import/import.h"
#include "bindings/import/interpolation_text.h"
#include "bindings/import/mapper.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

/// The value of x, in the terms of omegaconf_values.py.
Json described(const std::string& yaml) {
  const auto text = [](const std::string& kind, const Json& value) {
    return Json{{"kind", kind}, {"value", value}};
  };
  DocScalar scalar;
  try {
    Mapper mapper(read_yaml(yaml, "x.yaml"), yaml, "x.yaml");
    const DocNode& x = *mapper.root().find("x");
    if (!x.is_scalar()) return {{"kind", "container"}};
    scalar = mapper.value(&x);
  } catch (const Error&) {
    return {{"kind", "error"}};
  }
  switch (scalar.kind) {
    case DocScalar::Kind::kNull: return {{"kind", "null"}};
    case DocScalar::Kind::kBool: return text("bool", scalar.text == "true");
    case DocScalar::Kind::kInteger: return text("integer", scalar.text);
    case DocScalar::Kind::kText: return text("text", scalar.text);
    case DocScalar::Kind::kNumber: break;
  }
  const std::string python = python_text(scalar);
  const double number = std::strtod(python.c_str(), nullptr);
  return text("number", std::isfinite(number) ? Json(number) : Json(python));
}

TEST(Interpolation, GivesTheValuesOfOmegaConf) {
  const std::string path = TYCHO_SOURCE_DIR "/tests/golden/omegaconf_values.json";
  const Json cases = parse_json(read_file(path), path);
  EXPECT_GT(cases.size(), 80u);
  for (Json wanted : cases) {
    const std::string yaml = wanted.at("yaml");
    wanted.erase("yaml");
    EXPECT_EQ(described(yaml), wanted) << yaml;
  }
}

TEST(Interpolation, ReferencesInReferencesHaveALimit) {
  EXPECT_EQ(nesting_of("a ${b} ${c.${d}} }"), 2);
  EXPECT_EQ(nesting_of("\\${ \\${ \\\\${a}"), 1) << "a backslash makes it text";
  for (const int levels : {17, 2000, 50'000}) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += "${";
    for (const std::string& end :
         {std::string("a") + std::string(static_cast<size_t>(levels), '}'), std::string()})
      try {
        const std::string yaml = "a: a\nx: \"" + text + end + "\"\n";
        Mapper mapper(read_yaml(yaml, "x.yaml"), yaml, "x.yaml");
        FAIL() << levels;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kRecipe);
        EXPECT_EQ(std::string(error.what()),
                  "[import] x.yaml: line 2: expected ${...} in at most 16 levels, got " +
                      std::to_string(levels) + "; write out the inner ones");
      }
  }
}

std::string lua_of_lines(const std::string& lines) {
  return import_recipe("x.yaml", "max_duration: 10ba\ntrain_loader: {name: text}\n" + lines).lua;
}

std::string line_refusal(const std::string& lines) {
  try {
    return lua_of_lines(lines);
  } catch (const Error& error) {
    return error.what();
  }
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Interpolation, JoinsValuesInLuaAsPythonDoes) {
  EXPECT_CONTAINS(lua_of_lines("variables: {b: true}\nrun_name: x-${variables.b}\n"), "\"x-\" .. \"True\"");
  EXPECT_CONTAINS(lua_of_lines("variables: {l: [1, a]}\nrun_name: x-${variables.l}\n"),
                  "\"x-\" .. \"[1, 'a']\"");
  EXPECT_CONTAINS(lua_of_lines("variables: {f: 1.0}\nrun_name: x-${variables.f}\n"), "\"x-\" .. \"1.0\"");
  EXPECT_CONTAINS(lua_of_lines("variables: {f: 0.5}\nrun_name: x-${variables.f}\n"), "\"x-\" .. f\n");
  EXPECT_CONTAINS(lua_of_lines("run_name: 'a\\${x}'\n"), "r.run_name = \"a${x}\"\n");
}

TEST(Interpolation, FollowsReferencesInReferences) {
  EXPECT_CONTAINS(lua_of_lines("variables: {a: b, b: 5}\nseed: ${variables.${variables.a}}\n"),
                  "r.seed = b\n");
  EXPECT_CONTAINS(lua_of_lines("variables: {l: [3, 4]}\nseed: ${variables.l[1]}\n"), "local l_1 = 4\n");
  EXPECT_CONTAINS(lua_of_lines("variables: {a: \"${.b}\", b: 5}\nseed: ${variables.a}\n"), "r.seed = b\n");
  EXPECT_CONTAINS(line_refusal("seed: ${variables.${x}}\n"), "${x} refers to a key that does not exist");
  EXPECT_CONTAINS(line_refusal("run_name: x${seed\n"), "run_name = x${seed: has a ${ that is never closed");
}

TEST(Interpolation, RefusesAListWhereAValueBelongs) {
  EXPECT_CONTAINS(line_refusal("run_name: [a, b]\n"), "run_name: expected a value, found a list");
  EXPECT_CONTAINS(line_refusal("variables: {l: [1]}\nseed: ${variables.l}\nrun_name: ${variables.l}\n"),
                  "run_name: expected a value, found a list");
}

}  // namespace
}  // namespace tycho
