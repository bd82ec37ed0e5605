// Reads YAML with its lines; aliases and merge keys are written out.
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "bindings/import/document.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

class YamlReader {
 public:
  explicit YamlReader(const std::string& place) : place_(place), budget_(place) {}

  DocNode read(const YAML::Node& yaml, int line, int depth) {
    budget_.take(depth);
    DocNode node;
    node.line = node.last_line = line > 0 ? line : line_of(yaml);
    if (yaml.IsMap()) {
      node.kind = DocNode::Kind::kMap;
      read_entries(yaml, node, depth);
    } else if (yaml.IsSequence()) {
      node.kind = DocNode::Kind::kList;
      for (const YAML::Node& item : yaml) add_item(read(item, 0, depth + 1), node);
    } else if (yaml.IsScalar()) {
      refuse_tag(yaml);
      node.text = yaml.Scalar();
      node.is_plain = yaml.Tag() == "?" || yaml.Tag().empty();
    }
    return node;
  }

 private:
  static int line_of(const YAML::Node& yaml) { return yaml.Mark().is_null() ? 0 : yaml.Mark().line + 1; }

  void refuse_tag(const YAML::Node& yaml) const {
    const std::string& tag = yaml.Tag();
    if (tag.empty() || tag == "?" || tag == "!") return;
    fail(ExitCode::kUnusable, "[{}] line {}: a value with the tag {}; write the value itself", place_,
         line_of(yaml), tag);
  }

  static void add_item(DocNode item, DocNode& node) {
    node.last_line = std::max(node.last_line, item.last_line);
    node.items.push_back(std::move(item));
  }

  void read_entries(const YAML::Node& yaml, DocNode& node, int depth) {
    std::vector<YAML::Node> merged;
    for (const auto& entry : yaml) {
      const int line = line_of(entry.first);
      if (!entry.first.IsScalar())
        fail(ExitCode::kUnusable, "[{}] line {}: a key that is no text", place_, line);
      const std::string key = entry.first.Scalar();
      if (key == "<<") {
        if (entry.second.IsSequence()) {
          for (const YAML::Node& one : entry.second) merged.push_back(one);
        } else {
          merged.push_back(entry.second);
        }
        continue;
      }
      if (node.find(key) != nullptr)
        fail(ExitCode::kUnusable, "[{}] line {}: the key {} is there twice", place_, line, key);
      DocNode value = read(entry.second, line, depth + 1);
      node.last_line = std::max(node.last_line, value.last_line);
      node.entries.push_back({key, std::move(value)});
    }
    for (const YAML::Node& one : merged) merge(one, node, depth);
  }

  /// Adds what `node` does not say itself. Lines stay those of the anchor, so messages point at the text.
  void merge(const YAML::Node& yaml, DocNode& node, int depth) {
    if (!yaml.IsMap()) fail(ExitCode::kUnusable, "[{}] line {}: << wants a map", place_, line_of(yaml));
    const int last_line = node.last_line;
    DocNode base = read(yaml, 0, depth + 1);
    for (auto& [key, value] : base.entries) {
      if (node.find(key) == nullptr) node.entries.push_back({key, std::move(value)});
    }
    node.last_line = last_line;
  }

  const std::string& place_;
  NodeBudget budget_;
};

}  // namespace

DocNode read_yaml(const std::string& text, const std::string& place) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1) {
      fail(ExitCode::kUnusable, "[{}] wanted one YAML document, found {}", place, documents.size());
    }
    return YamlReader(place).read(documents[0], 0, 0);
  } catch (const YAML::DeepRecursion&) {
    fail(ExitCode::kUnusable, "[{}] goes more than 64 levels deep", place);
  } catch (const YAML::Exception& error) {
    fail(ExitCode::kUnusable, "[{}] is not YAML: line {}, column {}: {}", place, error.mark.line + 1,
         error.mark.column + 1, error.msg);
  }
}

}  // namespace tycho
