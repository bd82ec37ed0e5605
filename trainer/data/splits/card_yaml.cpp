// Lines with their indents; a list's item becomes a line of its own, further to the right.
#include "trainer/data/splits/card_yaml.h"

#include <cctype>
#include <string_view>

#include "trainer/base/error.h"

namespace tycho {
namespace {

struct CardLine {
  size_t indent = 0;
  std::string text;
  int number = 0;
};

/// Returns the end of the quoted text at the beginning; npos if it does not end.
size_t end_of_quoted(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[0] == '"' && text[at] == '\\')
      ++at;
    else if (text[at] == text[0] && text[0] == '\'' && at + 1 < text.size() && text[at + 1] == '\'')
      ++at;
    else if (text[at] == text[0])
      return at + 1;
  }
  return text.npos;
}

bool is_quoted(std::string_view text) { return !text.empty() && (text[0] == '"' || text[0] == '\''); }

/// Returns the length of "key" in "key: value" or "key:"; npos for other texts.
size_t end_of_key(std::string_view text) {
  size_t end = 0;
  if (is_quoted(text))
    end = end_of_quoted(text);
  else
    while (end < text.size() && (text[end] != ':' || (end + 1 < text.size() && text[end + 1] != ' '))) ++end;
  return end < text.size() && text[end] == ':' && (end + 1 == text.size() || text[end + 1] == ' ')
             ? end
             : text.npos;
}

std::string without_comment(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && !(text[at] == '#' && (at == 0 || text[at - 1] == ' '))) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '[' || text[at - 1] == ',';
    const size_t end = begins && is_quoted(text.substr(at)) ? end_of_quoted(text.substr(at)) : text.npos;
    at += end == text.npos ? 1 : end;
  }
  text = text.substr(0, at);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t'))
    text.remove_suffix(1);
  return std::string(text);
}

class BlockReader {
 public:
  BlockReader(std::vector<CardLine> lines, const std::string& place)
      : lines_(std::move(lines)), place_(place) {}

  CardNode read_all() {
    if (lines_.empty()) return {};
    CardNode node = block(0);
    if (at_ < lines_.size()) wrong(lines_[at_]);
    return node;
  }

 private:
  [[noreturn]] void wrong(const CardLine& line) const {
    fail(ExitCode::kUnusable,
         "[data] {}:{} expected plain YAML in blocks, got \"{}\", which is not read: write it as key: value "
         "and "
         "- item, or name the files themselves",
         place_, line.number, line.text);
  }

  static bool is_item(const CardLine& line) { return line.text == "-" || line.text.starts_with("- "); }

  CardNode block(int depth) {
    const CardLine& first = lines_[at_];
    if (depth > 32) wrong(first);
    if (is_item(first)) return list(first.indent, depth);
    if (end_of_key(first.text) != std::string::npos) return map(first.indent, depth);
    CardNode node = value(first.text, first);
    ++at_;
    return node;
  }

  CardNode list(size_t indent, int depth) {
    CardNode node{.kind = CardNode::Kind::kList, .line = lines_[at_].number};
    while (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_])) {
      CardLine& line = lines_[at_];
      const size_t begin = line.text.find_first_not_of(' ', 1);
      if (begin == std::string::npos) {
        ++at_;
        node.items.push_back(at_ < lines_.size() && lines_[at_].indent > indent ? block(depth + 1)
                                                                                : CardNode());
        continue;
      }
      line.text.erase(0, begin);
      line.indent += begin;
      node.items.push_back(block(depth + 1));
    }
    return node;
  }

  CardNode map(size_t indent, int depth) {
    CardNode node{.kind = CardNode::Kind::kMap, .line = lines_[at_].number};
    while (at_ < lines_.size() && lines_[at_].indent == indent && !is_item(lines_[at_])) {
      const CardLine line = lines_[at_];
      const size_t end = end_of_key(line.text);
      if (end == std::string::npos) wrong(line);
      const std::string key = value(line.text.substr(0, end), line).text;
      const size_t begin = line.text.find_first_not_of(' ', end + 1);
      ++at_;
      const bool has_lines = at_ < lines_.size() && (lines_[at_].indent > indent ||
                                                     (lines_[at_].indent == indent && is_item(lines_[at_])));
      CardNode read{.line = line.number};
      if (begin != std::string::npos && (line.text[begin] == '|' || line.text[begin] == '>')) {
        while (at_ < lines_.size() && lines_[at_].indent > indent) ++at_;
        read.kind = CardNode::Kind::kText;
      } else if (begin != std::string::npos) {
        read = value(line.text.substr(begin), line);
      } else if (has_lines) {
        read = block(depth + 1);
      }
      if (node.find(key) != nullptr) wrong(line);
      node.entries.emplace_back(key, std::move(read));
    }
    if (at_ < lines_.size() && lines_[at_].indent > indent) wrong(lines_[at_]);
    return node;
  }

  CardNode value(const std::string& text, const CardLine& line) const {
    CardNode node{.kind = CardNode::Kind::kText, .line = line.number};
    if (text == "~" || text == "null") return {.line = line.number};
    if (text.starts_with('[')) return brackets(text, line);
    if (!is_quoted(text)) {
      if (text.find_first_of("&*!{}]|>%@`?") == 0 || text.find(": ") != text.npos) wrong(line);
      node.text = text;
      return node;
    }
    if (end_of_quoted(text) != text.size()) wrong(line);
    for (size_t at = 1; at + 1 < text.size(); ++at) {
      if (text[0] == '"' && text[at] == '\\' && text[++at] != '"' && text[at] != '\\' && text[at] != '/')
        wrong(line);
      if (text[0] == '\'' && text[at] == '\'') ++at;
      node.text += text[at];
    }
    return node;
  }

  CardNode brackets(const std::string& text, const CardLine& line) const {
    if (!text.ends_with(']')) wrong(line);
    CardNode node{.kind = CardNode::Kind::kList, .line = line.number};
    std::string_view rest = std::string_view(text).substr(1, text.size() - 2);
    while (true) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (rest.empty()) return node;
      size_t end = is_quoted(rest) ? end_of_quoted(rest) : rest.find(',');
      end = std::min(end, rest.size());
      std::string item(rest.substr(0, end));
      while (item.ends_with(' ')) item.pop_back();
      node.items.push_back(value(item, line));
      rest.remove_prefix(end);
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (!rest.empty() && rest[0] != ',') wrong(line);
      if (!rest.empty()) rest.remove_prefix(1);
    }
  }

  std::vector<CardLine> lines_;
  const std::string& place_;
  size_t at_ = 0;
};

}  // namespace

const CardNode* CardNode::find(const std::string& key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

CardNode read_card_key(const std::string& yaml, const std::string& key, const std::string& place,
                       int first_line) {
  std::vector<CardLine> lines;
  bool is_inside = false;
  int number = first_line - 1;
  for (size_t begin = 0; begin < yaml.size();) {
    const size_t end = std::min(yaml.find('\n', begin), yaml.size());
    const std::string line = yaml.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const size_t indent = line.find_first_not_of(' ');
    const std::string text =
        indent == line.npos ? "" : without_comment(std::string_view(line).substr(indent));
    if (text.empty()) continue;
    if (indent == 0 && text[0] != '-')
      is_inside = text.starts_with(key + ":") || text.starts_with('"' + key + "\":");
    if (is_inside) lines.push_back({indent, text, number});
  }
  CardNode root = BlockReader(std::move(lines), place).read_all();
  return root.entries.empty() ? CardNode() : std::move(root.entries[0].second);
}

}  // namespace tycho
