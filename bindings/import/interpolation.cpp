// ${...}: values that a file takes from elsewhere in it become locals of the recipe.
#include <algorithm>
#include <cctype>

#include "bindings/import/mapper.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kMostSteps = 32;  // from one reference to the next

/// One piece of a text: as it stands, or the path inside ${...}.
struct Piece {
  bool is_path = false;
  std::string text;
};

std::vector<Piece> pieces_of(const std::string& text) {
  std::vector<Piece> pieces;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = std::min(text.find("${", at), text.size());
    if (open > at) pieces.push_back({false, text.substr(at, open - at)});
    if (open == text.size()) break;
    const size_t close = text.find('}', open);
    if (close == std::string::npos) {
      pieces.push_back({false, text.substr(open)});
      break;
    }
    pieces.push_back({true, text.substr(open + 2, close - open - 2)});
    at = close + 1;
  }
  return pieces;
}

/// The path of a text that is one ${...} and nothing else.
std::optional<std::string> whole_reference(const DocNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  const std::vector<Piece> pieces = pieces_of(node.text);
  if (pieces.size() != 1 || !pieces[0].is_path) return std::nullopt;
  return pieces[0].text;
}

std::string literal(const DocScalar& scalar) {
  if (scalar.is(DocScalar::Kind::kNull)) return "nil";
  return scalar.is(DocScalar::Kind::kText) ? lua_quoted(scalar.text) : scalar.text;
}

}  // namespace

bool Mapper::is_interpolated(const DocNode& node) const {
  return node.is_scalar() && node.text.find("${") != std::string::npos;
}

/// Maps and lists have no locals: a reference to one becomes what it refers to.
void Mapper::inline_structures(DocNode& node, int depth) {
  budget_.take(depth);
  if (const std::optional<std::string> path = whole_reference(node)) {
    const DocNode* target = root_.at(*path);
    if (target == nullptr || target->is_scalar()) return;
    const int line = node.line;
    const SourcePlace key = node.key, value = node.value;
    DocNode copy = *target;  // before it is written over, should it hold this node
    node = std::move(copy);
    node.line = node.last_line = line;
    node.key = key, node.value = value;
    return inline_structures(node, depth + 1);
  }
  for (DocNode& item : node.items) inline_structures(item, depth + 1);
  for (auto& [key, value] : node.entries) inline_structures(value, depth + 1);
}

void Mapper::break_off(const DocEntry& entry, const std::string& said) const {
  throw BrokenReference(fmt::format("[import] {}: line {}: ", place_, entry.node.line), said);
}

/// The path that a reference leads to in the end.
std::string Mapper::target_of(const DocEntry& entry, const std::string& path, int depth) const {
  if (path.find(':') != std::string::npos)
    break_off(entry, fmt::format("${{{}}} calls a resolver, which LLM Foundry does not have; write the value",
                                 path));
  const DocNode* target = root_.at(path);
  if (target == nullptr) break_off(entry, fmt::format("${{{}}} refers to a key that is not there", path));
  if (depth > kMostSteps) break_off(entry, fmt::format("${{{}}} refers to itself", path));
  const std::optional<std::string> next = whole_reference(*target);
  return next ? target_of(entry, *next, depth + 1) : path;
}

/// A scalar with everything that it refers to filled in.
DocNode Mapper::resolved(const DocEntry& entry, int depth) {
  if (!is_interpolated(entry.node)) return entry.node;
  if (depth > kMostSteps) break_off(entry, brief(entry.node) + " refers to itself");
  if (const std::optional<std::string> path = whole_reference(entry.node)) {
    const std::string target = target_of(entry, *path, 0);
    return resolved({target, *root_.at(target)}, depth + 1);
  }
  DocNode out = entry.node;
  out.text.clear();
  out.is_plain = false;
  for (const Piece& piece : pieces_of(entry.node.text)) {
    if (!piece.is_path) {
      out.text += piece.text;
      continue;
    }
    const std::string target = target_of(entry, piece.text, 0);
    const DocScalar part = read_scalar(resolved({target, *root_.at(target)}, depth + 1));
    out.text += part.is(DocScalar::Kind::kNull) ? "None" : part.text;
    if (out.text.size() > 65536)
      fail(ExitCode::kRecipe, "[import] {}: line {}: the text grows beyond 64 KiB", place_, entry.node.line);
  }
  return out;
}

DocScalar Mapper::value(const DocNode* node) {
  if (node == nullptr) return {DocScalar::Kind::kNull, ""};
  return read_scalar(resolved({"", *node}, 0));
}

/// The local that stands for a path; it is declared by local_lines().
std::string Mapper::reference(const DocEntry& entry, const std::string& path) {
  const std::string target = target_of(entry, path, 0);
  std::string& name = locals_[target];
  if (name.empty()) {
    const std::string base =
        lua_name(target.starts_with("variables.") ? target.substr(sizeof "variables." - 1) : target);
    name = base;
    for (int i = 2; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  }
  return name;
}

std::string Mapper::expression(const DocEntry& entry) {
  if (!is_interpolated(entry.node)) return literal(read_scalar(entry.node));
  if (const std::optional<std::string> path = whole_reference(entry.node)) return reference(entry, *path);
  std::string out;
  for (const Piece& piece : pieces_of(entry.node.text)) {
    const bool is_none =
        piece.is_path && value(root_.at(target_of(entry, piece.text, 0))).is(DocScalar::Kind::kNull);
    const std::string part = is_none         ? "\"None\""
                             : piece.is_path ? reference(entry, piece.text)
                                             : lua_quoted(piece.text);
    out += (out.empty() ? "" : " .. ") + part;
  }
  return out;
}

std::string Mapper::expression_with(const DocEntry& entry, const std::string& suffix) {
  if (is_interpolated(entry.node)) return expression(entry) + " .. " + lua_quoted(suffix);
  return lua_quoted(text_of(&entry.node) + suffix);
}

/// Makes everything that used locals need a local too.
void Mapper::close_over_locals() {
  for (size_t before = 0; before != locals_.size();) {
    before = locals_.size();
    for (const auto& [path, local] : std::map<std::string, std::string>(locals_))
      expression({path, *root_.at(path)});
  }
}

/// Declares a local after those that it needs; a variable that nothing needs stays as a comment.
void Mapper::declare(LuaWriter& header, std::set<std::string>& done, const std::string& path,
                     const DocNode& node) {
  if (!done.insert(path).second) return;
  if (node.is_map()) {
    for (const auto& [key, value] : node.entries) declare(header, done, path + "." + key, value);
    return;
  }
  const DocEntry entry = {path, node};
  const auto local = locals_.find(path);
  std::string lua = fmt::format("-- {}: {}  (not needed here)", path, brief(node));
  if (local != locals_.end()) {
    for (const Piece& piece : pieces_of(node.text)) {
      if (!piece.is_path) continue;
      const std::string target = target_of(entry, piece.text, 0);
      declare(header, done, target, *root_.at(target));
    }
    lua = fmt::format("local {} = {}", local->second, expression(entry));
  }
  header.comments_before(node.line);
  header.write(lua, node.line, node.argument > 0 ? fmt::format("argument {}", node.argument) : "",
               node.place());
}

/// All locals, those of `variables` in the file's order with its comments.
LuaWriter Mapper::local_lines() {
  close_over_locals();
  LuaWriter header(comments_);
  std::set<std::string> done;
  if (const DocNode* variables = root_.find("variables")) {
    enter(header, "variables");
    declare(header, done, "variables", *variables);
  }
  for (const auto& [path, name] : locals_) declare(header, done, path, *root_.at(path));
  return header;
}

namespace {

std::optional<std::string> duration_text(Mapper& mapper, const DocEntry& entry, const char* unit) {
  const DocScalar scalar = mapper.value(&entry.node);
  if (scalar.is(DocScalar::Kind::kInteger)) {
    if (mapper.is_interpolated(entry.node)) return mapper.expression(entry) + " .. " + lua_quoted(unit);
    return lua_quoted(scalar.text + unit);
  }
  std::string text = scalar.text;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  try {
    Duration::parse(text);
  } catch (const Error&) {
    mapper.problem(entry, "wanted a time such as 100ba, 2ep or 0.5dur");
    return std::nullopt;
  }
  return mapper.is_interpolated(entry.node) ? mapper.expression(entry) : lua_quoted(text);
}

}  // namespace

Convert duration_in(const char* unit) {
  return [=](Mapper& mapper, const DocEntry& entry) -> std::optional<std::string> {
    if (entry.node.is_scalar()) return duration_text(mapper, entry, unit);
    mapper.problem(entry, "wanted a time");
    return std::nullopt;
  };
}

}  // namespace tycho
