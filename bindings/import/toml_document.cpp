// Reads TOML with its lines.
namespace tycho {
namespace {

struct TomlStumble {};
[[noreturn]] void stumble() { throw TomlStumble(); }

}  // namespace
}  // namespace tycho

// toml++ takes what it asserts for granted when NDEBUG is set, and some broken files ("[" alone on a line)
// break it.
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : ::tycho::stumble())
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>

#include "bindings/import/document.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

class TomlReader {
 public:
  explicit TomlReader(const std::string& place) : budget_(place) {}

  DocNode read(const toml::node& toml, int line, int depth) {
    budget_.take(depth);
    DocNode node;
    node.line = line;
    node.last_line = std::max(line, static_cast<int>(toml.source().end.line));
    if (const toml::table* table = toml.as_table()) {
      node.kind = DocNode::Kind::kMap;
      for (const auto& [key, value] : *table) {
        const int key_line = static_cast<int>(key.source().begin.line);
        node.entries.push_back({std::string(key.str()), read(value, key_line, depth + 1)});
      }
      // Tables are sorted by name; the order of the file is that of their lines.
      std::stable_sort(node.entries.begin(), node.entries.end(),
                       [](const auto& a, const auto& b) { return a.node.line < b.node.line; });
    } else if (const toml::array* array = toml.as_array()) {
      node.kind = DocNode::Kind::kList;
      for (const toml::node& item : *array)
        node.items.push_back(read(item, static_cast<int>(item.source().begin.line), depth + 1));
    } else {
      read_value(toml, node);
    }
    for (const auto& [key, value] : node.entries) node.last_line = std::max(node.last_line, value.last_line);
    return node;
  }

 private:
  static void read_value(const toml::node& toml, DocNode& node) {
    if (const auto text = toml.as_string()) {
      node.text = text->get();
      node.is_plain = false;
    } else if (const auto flag = toml.as_boolean()) {
      node.text = flag->get() ? "true" : "false";
    } else if (const auto whole = toml.as_integer()) {
      node.text = std::to_string(whole->get());
    } else if (const auto number = toml.as_floating_point()) {
      node.text = fmt::format("{}", number->get());
    } else {  // dates and times
      node.text = "a date or time";
      node.is_plain = false;
    }
  }

  NodeBudget budget_;
};

}  // namespace

DocNode read_toml(const std::string& text, const std::string& place) {
  try {
    return TomlReader(place).read(toml::parse(text, place), 1, 0);
  } catch (const toml::parse_error& error) {
    fail(ExitCode::kUnusable, "[{}] is not TOML: line {}, column {}: {}", place, error.source().begin.line,
         error.source().begin.column, error.description());
  } catch (const TomlStumble&) {
    fail(ExitCode::kUnusable, "[{}] is not TOML: a table or key has no name", place);
  }
}

}  // namespace tycho
