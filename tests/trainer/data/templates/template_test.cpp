// Templates of chats against jinja2, as transformers sets it up, and what an untrusted template cannot do.
#include "trainer/data/templates/template.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho::jinja {
namespace {

using tycho::testing::expect_error;
using tycho::testing::golden;
using Names = std::vector<std::pair<std::string, Value>>;

Value value_of(const Json& json, Rendering& rendering) {
  if (json.is_null()) return {};
  if (json.is_boolean()) return Value::Data(json.get<bool>());
  if (json.is_number_integer()) return Value::Data(json.get<int64_t>());
  if (json.is_number()) return Value::Data(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(value_of(item, rendering));
    return make_list(std::move(items), ListKind::kList, rendering);
  }
  Names members;
  for (const auto& [key, member] : json.items()) members.emplace_back(key, value_of(member, rendering));
  return make_dict(std::move(members), rendering);
}

Names names_of(const Json& json) {
  Rendering rendering;
  Names names;
  for (const auto& [key, value] : json.items()) names.emplace_back(key, value_of(value, rendering));
  return names;
}

Json read_golden(const std::string& name) { return Json::parse(read_file(golden("jinja/" + name))); }

constexpr Date kDay = {2026, 3, 9};

/// What differs from `expected`, whose null is an error; "" for nothing.
std::string difference(const std::string& source, const Names& names, const Json& expected) {
  std::string text;
  try {
    text = Template(source, "t").render(names, kDay);
  } catch (const Error& error) {
    return expected.is_null() ? ""
                              : source + "\n  expected " + expected.dump() + "\n  refused: " + error.what();
  }
  if (expected.is_null()) return source + "\n  expected an error, got " + text;
  return text == expected.get<std::string>()
             ? ""
             : source + "\n  expected " + expected.dump() + "\n  got      " + text;
}

TEST(JinjaTemplate, ExpressionsHaveTheTextsOfJinja) {
  const Names names = names_of(read_golden("names.json"));
  int compared = 0, unsupported = 0;
  for (const Json& one : read_golden("expressions.json")) {
    const std::string found = difference("{{ " + one[0].get<std::string>() + " }}", names, one[1]);
    ++compared;
    if (found.find("not supported") != std::string::npos) {
      ++unsupported;
    } else {
      EXPECT_EQ(found, "");
    }
  }
  EXPECT_GT(compared, 3000);
  EXPECT_LT(unsupported, compared / 50);
}

TEST(JinjaTemplate, BlocksAndWhiteSpaceAreThoseOfTransformers) {
  const Names names = names_of(read_golden("names.json"));
  int compared = 0;
  for (const Json& one : read_golden("blocks.json")) {
    EXPECT_EQ(difference(one[0], names, one[1]), "");
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

/// How many renders of a folder were compared, and how many of them are errors.
std::pair<int, int> compare_renders(const std::string& folder) {
  const Json talks = read_golden("talks.json"), names = read_golden("names.json");
  int compared = 0, refused = 0;
  for (const Json& one : Json::parse(read_file(folder + "/renders.json"))) {
    Json given = {{"messages", talks["talks"][one["talk"].get<size_t>()]},
                  {"tools", talks["tools"][one["tools"].get<size_t>()]},
                  {"documents", nullptr},
                  {"add_generation_prompt", one["generation"]}};
    for (const char* token : {"bos_token", "eos_token", "unk_token", "pad_token"})
      given[token] = names[token];
    const std::string name = one["template"];
    EXPECT_EQ(difference(read_file(folder + "/templates/" + name), names_of(given), one["text"]), "")
        << name << " of talk " << one["talk"];
    ++compared;
    refused += one["text"].is_null();
  }
  return {compared, refused};
}

TEST(JinjaTemplate, TemplatesInTheStyleOfKnownModelsRenderAsInTransformers) {
  const auto [compared, refused] = compare_renders(golden("jinja"));
  EXPECT_GT(compared, 500);
  EXPECT_GT(refused, 20);
}

/// Templates of the models themselves are not ours to keep here: make_jinja_goldens.py says how to compare
/// them.
TEST(JinjaTemplate, TemplatesOfAFolderRenderAsInTransformers) {
  const char* const folder = std::getenv("TYCHO_JINJA_FOLDER");
  if (folder == nullptr) GTEST_SKIP() << "set TYCHO_JINJA_FOLDER to a folder with templates and renders.json";
  EXPECT_GT(compare_renders(folder).first, 0);
}

TEST(JinjaTemplate, ErrorsNamePlaceAndLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\n\n{{ 1 + }}", "[t.jinja:3] unexpected }}"},
      {"{% include 'x' %}", "[t.jinja:1] the statement include is not supported"},
      {"\n{% for x in y %}", "[t.jinja:2] a block is not closed: write {% endfor %}"},
      {"\r\n{{ x|nothing }}", "[t.jinja:2] the filter nothing is not supported"},
      {"{{ x is nothing }}", "the test \"is nothing\" is not supported"},
      {"{{ 'x'.format() }}", "the method format of str is not supported"},
      {"{{ x.y }}", "'x' is undefined, which has no .y"},
      {"{{ raise_exception('roles must alternate') }}",
       "[t.jinja:1] the template refuses the conversation: roles must alternate"},
      {"{{ strftime_now('%d') }}", "there is no function 'strftime_now'"},
      {"{{ 'é'|upper }}", "characters that are not ASCII"},
      {"{{ 1 ** 2 }}", "the operator ** is not supported"},
      {"{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
      {"{{ '\xff' }}", "is not UTF-8 text at byte 5"},
      {"{% set q = 'ab'|reverse|map('upper') %}{{ q|join }}{{ q|join }}", "walked a second time"},
  };
  for (const auto& [source, message] : cases)
    expect_error(ExitCode::kUnusable, {message}, [&] { Template(source, "t.jinja").render({}); });
}

/// A template comes with a downloaded model: it must not hang a run, fill its memory or its stack.
TEST(JinjaTemplate, AnUntrustedTemplateIsStopped) {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string forever = "{% for x in range(99999) %}";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {repeated(forever, 3) + repeated("{% endfor %}", 3), "does too much"},
      {"{% set ns = namespace(x='aaaa') %}" + forever + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}", ""},
      {"{% set ns = namespace(x=[1]) %}" + forever + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}", ""},
      {"{% set ns = namespace(x=1) %}" + forever +
           "{% for y in [ns.x] %}{% set ns.x = loop %}{% endfor %}{% endfor %}",
       "nested more than"},
      {"{% set ns = namespace(x=1) %}" + forever + "{% set ns.x = [ns.x] %}{% endfor %}", "nested more than"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested more than"},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nested more than"},
      {"{{ " + repeated("not ", 5000) + "1 }}", "nested more than"},
      {"{{ 1" + repeated(" + 1", 5000) + " }}", "nested more than"},
      {"{{ a" + repeated("[1]", 5000) + " }}", "nested more than"},
      {repeated("{% if a %}", 5000) + repeated("{% endif %}", 5000), "nested more than"},
      {"{{ 'x' * 9999999999 }}", "larger than"},
      {"{{ range(999999999) }}", "range is too long"},
      {forever + "{{ 'abcdefghij' * 100000 }}{% endfor %}", "does too much"},
      {std::string(2 << 20, 'x'), "expected at most"},
  };
  for (const auto& [source, message] : cases)
    expect_error(ExitCode::kUnusable, {"[t:1]", message}, [&] { Template(source, "t").render({}); });
}

TEST(JinjaTemplate, ANamespaceMayHoldItself) {
  EXPECT_EQ(Template("{% set ns = namespace(x=1) %}{% set ns.me = ns %}{{ ns.me.me.x }}", "t").render({}),
            "1");
}

}  // namespace
}  // namespace tycho::jinja
