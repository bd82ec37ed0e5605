// Reading YAML and TOML with lines and limits, and what their scalars mean.
#include "bindings/import/document.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

DocNode yaml(const std::string& text) { return read_yaml(text, "x.yaml"); }

std::string parse_refusal(const std::string& text, bool toml = false) {
  try {
    toml ? read_toml(text, "x.toml") : read_yaml(text, "x.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    return error.what();
  }
  return "";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Yaml, HasKeysInOrderWithTheirLines) {
  const DocNode root = yaml("b: 1\n\na:\n  c: [x, 'y']\n  d:\n");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.at("a.c")->line, 4);
  EXPECT_EQ(root.find("a")->last_line, 5);
  EXPECT_TRUE(root.at("a.c")->items[0].is_plain);
  EXPECT_FALSE(root.at("a.c")->items[1].is_plain);
  EXPECT_EQ(read_scalar(*root.at("a.d")).kind, DocScalar::Kind::kNull);
  EXPECT_EQ(root.at("a.x"), nullptr);
}

TEST(Yaml, KnowsWhereKeysAndValuesStand) {
  const DocNode root = yaml("a: &x  12\nb: {c: 'd', e: *x}\nf:\n  - \"g\"\n");
  const auto shown = [](const SourceLocation& place) {
    return fmt::format("{}:{}+{}", place.line, place.col, place.len);
  };
  EXPECT_EQ(shown(root.at("a")->key), "1:1+1");
  EXPECT_EQ(shown(root.at("a")->place()), "1:8+2");
  EXPECT_EQ(shown(root.at("b")->place()), "2:1+1") << "a map is pointed at by its key";
  EXPECT_EQ(shown(root.at("b.c")->place()), "2:8+3");
  EXPECT_EQ(shown(root.at("b.e")->place()), "2:13+1") << "and so is an alias";
  EXPECT_EQ(shown(root.at("f")->items[0].place()), "4:5+3");
}

TEST(Yaml, WritesAliasesAndMergeKeysOut) {
  const DocNode root = yaml("a: &a\n  x: 1\n  y: 2\nb:\n  <<: *a\n  y: 3\nc: *a\n");
  EXPECT_EQ(root.at("b.x")->text, "1");
  EXPECT_EQ(root.at("b.y")->text, "3");
  EXPECT_EQ(root.at("c.y")->text, "2");
}

TEST(Yaml, StopsABombOfAliases) {
  std::string text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) text += fmt::format("{}*a{}", k > 0 ? "," : "", i - 1);
    text += "]\n";
  }
  EXPECT_CONTAINS(parse_refusal(text), "expands to more than 20,000 values");
}

TEST(Yaml, StopsDepth) {
  EXPECT_CONTAINS(parse_refusal("a: " + std::string(100, '[') + std::string(100, ']')),
                  "more than 64 levels deep");
  EXPECT_CONTAINS(parse_refusal("a: " + std::string(100000, '[')), "more than 64 levels deep");
}

TEST(Yaml, RefusesWhatIsNotYaml) {
  EXPECT_CONTAINS(parse_refusal("a: [1\nb: 2\n"), "x.yaml:2:2: not YAML: ");
  EXPECT_CONTAINS(parse_refusal("a: 1\na: 2\n"),
                  "x.yaml:2:1: the key a appears twice\n   2 | a: 2\n     | ^");
  EXPECT_CONTAINS(parse_refusal("a: !!python/object:os.system x\n"), "a value with the tag");
  EXPECT_CONTAINS(parse_refusal("a: 1\n---\nb: 2\n"), "expected one YAML document, found 2");
  EXPECT_CONTAINS(parse_refusal("? [a]\n: 1\n"), "a key that is not text");
  EXPECT_CONTAINS(parse_refusal("a: &x [*x]\n"), "x.yaml");
}

TEST(Toml, HasKeysInOrderWithTheirLines) {
  const SourceLocation place = read_toml("[b]\nx = \"1\"\n", "x.toml").at("b.x")->place();
  EXPECT_EQ(place.line, 2);
  EXPECT_EQ(place.col, 5);
  EXPECT_EQ(place.len, 3);
  const DocNode root = read_toml("z = 1\n[b]\nx = \"1\"\n[a]\ny = 0.5\nf = true\nl = [1, 2]\n", "x.toml");
  EXPECT_EQ(root.entries[1].key, "b");
  EXPECT_FALSE(root.at("b.x")->is_plain);
  EXPECT_EQ(root.at("a.y")->line, 5);
  EXPECT_EQ(root.at("a.y")->text, "0.5");
  EXPECT_EQ(root.at("a.l")->items.size(), 2u);
  EXPECT_CONTAINS(parse_refusal("a = \n", true), "x.toml:1:");
}

TEST(Documents, DeepTomlIsRefusedBeforeItIsParsed) {
  const auto repeated = [](const std::string& part, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += part;
    return text;
  };
  const std::string dotted = repeated("a.", 1'000'000) + "b";
  for (const std::string& text :
       {dotted + " = 1\n", "[" + dotted + "]\n", "x = {" + dotted + " = 1}\n",
        "x = " + repeated("[", 100'000), "x = " + repeated("{ " + repeated("a.", 40) + "a = ", 200),
        "y = \"\"\"\n\"\"\"\n# \"\n" + dotted + " = 1\n", "y = 'it''s'\n" + dotted + " = 1\n",
        repeated("\"a\" . ", 100'000) + "b = 1\n"})
    EXPECT_CONTAINS(parse_refusal(text, true), "x.toml") << text.substr(0, 40);
  EXPECT_CONTAINS(parse_refusal(dotted + " = 1\n", true), "nested more than 64 levels deep");
  const DocNode root =
      read_toml("x = [0.5, 1.5, [2.5]]\na.b.c = 'a.b.c.d # e.f'\n[t.u]\nv = \"" + dotted + "\"\n", "x.toml");
  EXPECT_EQ(root.at("a.b.c")->text, "a.b.c.d # e.f");
  EXPECT_EQ(root.at("x")->items.size(), 3u);
  EXPECT_EQ(root.at("t.u.v")->text, dotted);
}

TEST(Scalars, AreReadAsOmegaConfReadsThem) {
  const auto read = [](const std::string& text) {
    const DocScalar scalar = read_scalar({.text = text});
    return std::string(1, "nbift"[static_cast<int>(scalar.kind)]) + scalar.text;
  };
  EXPECT_EQ(read("yes"), "btrue");
  EXPECT_EQ(read("Off"), "bfalse");
  EXPECT_EQ(read("010"), "i8");
  EXPECT_EQ(read("0o10"), "t0o10");
  EXPECT_EQ(read("0x10"), "i16");
  EXPECT_EQ(read("12:30"), "i750");
  EXPECT_EQ(read("1:2.5"), "f62.5");
  EXPECT_EQ(read("1_000"), "i1000");
  EXPECT_EQ(read("6.0e-4"), "f6.0e-4");
  EXPECT_EQ(read("1e-4"), "f1e-4");
  EXPECT_EQ(read("-.5e-3"), "t-.5e-3");
  EXPECT_EQ(read("~"), "n");
  EXPECT_EQ(read("100ba"), "t100ba");
  EXPECT_EQ(read_scalar({.text = "yes", .is_plain = false}).kind, DocScalar::Kind::kText);
}

TEST(Yaml, RefusesSignsThatStandForSomethingElse) {
  for (const char* text : {"run_name: =\n", "x: <<\n", "x: [a, <<]\n", "=: 1\n"})
    EXPECT_CONTAINS(parse_refusal(text), "has a meaning of its own in YAML; write \"");
  EXPECT_EQ(yaml("x: \"=\"\n").find("x")->text, "=");
  EXPECT_EQ(yaml("x: '<<'\n").find("x")->text, "<<");
  EXPECT_EQ(yaml("\"<<\": {a: 1}\n").find("<<")->find("a")->text, "1");
}

TEST(Brief, CutsLongValues) {
  EXPECT_EQ(brief(yaml("a: {b: [1, x]}\n")), "{a: {b: [1, x]}}");
  EXPECT_LT(brief(yaml("a: " + std::string(1000, 'x') + "\n")).size(), 80u);
}

}  // namespace
}  // namespace tycho
