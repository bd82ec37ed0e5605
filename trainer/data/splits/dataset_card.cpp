// The rules are those of datasets/utils/metadata.py (5.2.0).
#include "trainer/data/splits/dataset_card.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "trainer/base/error.h"
#include "trainer/data/splits/card_yaml.h"
#include "trainer/data/splits/folder_splits.h"

namespace tycho {
namespace {

/// Returns the text between the first two lines that begin with ---; "" if the file does not begin so. Sets
/// the number of its first line.
std::string front_matter(const std::string& text, int& first_line) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text.compare(begin, 3, "---") != 0) return "";
  const size_t first = begin + 3;
  if (first >= text.size() || (text[first] != '\n' && text[first] != '\r')) return "";
  first_line =
      1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(first), '\n'));
  for (size_t at = text.find("\n---", first); at != text.npos; at = text.find("\n---", at + 1)) {
    const size_t end = at + 4;
    if (end == text.size() || text[end] == '\n' || text.compare(end, 2, "\r\n") == 0)
      return text.substr(first, at + 1 - first);
  }
  return "";
}

class CardReader {
 public:
  explicit CardReader(const std::string& place) : place_(place) {}

  std::vector<DeclaredConfiguration> configurations(const CardNode& list) const {
    std::vector<DeclaredConfiguration> found;
    std::set<std::string> names;
    if (list.kind != CardNode::Kind::kList) wrong(list, "a list of configurations in configs");
    for (const CardNode& entry : list.items) {
      found.push_back(configuration(entry));
      if (!names.insert(found.back().name).second)
        wrong(entry, fmt::format("each config_name once in configs, and {} only once", found.back().name));
    }
    return found;
  }

 private:
  [[noreturn]] void wrong(const CardNode& node, const std::string& expected) const {
    fail(ExitCode::kUnusable,
         "[data] {}:{} expected {}, got something else; `datasets` does not read it either: name the files "
         "themselves",
         place_, node.line, expected);
  }

  std::string text(const CardNode& node, const char* what) const {
    if (node.kind != CardNode::Kind::kText) wrong(node, what);
    return node.text;
  }

  std::vector<std::string> texts(const CardNode& node) const {
    if (node.kind == CardNode::Kind::kText) return {node.text};
    if (node.kind != CardNode::Kind::kList) wrong(node, "a path or a list of paths");
    std::vector<std::string> found;
    for (const CardNode& item : node.items) found.push_back(text(item, "a path or a list of paths"));
    return found;
  }

  DeclaredConfiguration configuration(const CardNode& entry) const {
    const CardNode* name = entry.find("config_name");
    if (name == nullptr) wrong(entry, "config_name in each entry of configs");
    DeclaredConfiguration one{.name = text(*name, "a text in config_name")};
    if (const CardNode* mark = entry.find("default"))
      one.is_default = mark->text == "true" || mark->text == "True" || mark->text == "yes";
    if (const CardNode* folder = entry.find("data_dir"); folder && folder->kind != CardNode::Kind::kNull)
      one.data_dir = text(*folder, "a folder in data_dir");
    if (const CardNode* files = entry.find("data_files"); files && files->kind != CardNode::Kind::kNull)
      add_files(*files, one);
    return one;
  }

  void add_files(const CardNode& files, DeclaredConfiguration& one) const {
    one.has_files = true;
    const bool has_splits = std::any_of(files.items.begin(), files.items.end(), [](const CardNode& item) {
      return item.kind == CardNode::Kind::kMap;
    });
    if (!has_splits) {
      one.splits.emplace_back("train", texts(files));
      return;
    }
    for (const CardNode& entry : files.items) {
      const CardNode *split = entry.find("split"), *path = entry.find("path");
      if (entry.entries.size() != 2 || split == nullptr || path == nullptr)
        wrong(entry, "split and path in each entry of data_files");
      const std::string name = text(*split, "a split's name");
      if (!can_name_split(name)) wrong(entry, "a split's name of letters, digits and _");
      for (const auto& [other, patterns] : one.splits)
        if (other == name) wrong(entry, fmt::format("each split once, and {} only once", name));
      one.splits.emplace_back(name, texts(*path));
    }
  }

  const std::string& place_;
};

std::vector<std::string> described_names(const CardNode& info) {
  std::vector<std::string> names;
  const auto add = [&](const CardNode& one) {
    const CardNode* name = one.find("config_name");
    names.push_back(name == nullptr ? "default" : name->text);
  };
  if (info.kind == CardNode::Kind::kMap) add(info);
  for (const CardNode& one : info.items) add(one);
  return names;
}

void read_into(const std::string& yaml, const std::string& place, int first_line, DatasetCard& card) {
  const CardNode list = read_card_key(yaml, "configs", place, first_line);
  if (list.kind != CardNode::Kind::kNull) card.configurations = CardReader(place).configurations(list);
  if (card.configurations.size() < 2) return;  // a default is chosen by dataset_info
  const CardNode info = read_card_key(yaml, "dataset_info", place, first_line);
  if (info.kind != CardNode::Kind::kNull) card.described = described_names(info);
}

}  // namespace

DatasetCard read_dataset_card(const std::string& readme, const std::string& standalone,
                              const std::string& place) {
  DatasetCard card;
  int first_line = 1;
  const std::string yaml = front_matter(readme, first_line);
  read_into(yaml, place + "README.md", first_line, card);
  read_into(standalone, place + ".huggingface.yaml", 1, card);
  return card;
}

}  // namespace tycho
