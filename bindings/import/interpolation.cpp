// ${...}: values that a file takes from elsewhere in it become locals of the recipe.
#include <algorithm>
#include <cctype>

#include "bindings/import/interpolation_text.h"
#include "bindings/import/mapper.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kMostSteps = 32;  // from one reference to the next
constexpr int kMostNested = 16;

std::string literal(const DocScalar& scalar) {
  if (scalar.is(DocScalar::Kind::kNull)) return "nil";
  if (scalar.is(DocScalar::Kind::kNumber) && scalar.text.find_first_of("nN") != std::string::npos)
    return scalar.text[0] == '-'                                  ? "-math.huge"
           : scalar.text.find_first_of("aA") != std::string::npos ? "0 / 0"
                                                                  : "math.huge";
  return scalar.is(DocScalar::Kind::kText) ? lua_quoted(scalar.text) : scalar.text;
}

/// Returns true when Lua concatenates a value to the same text as Python.
bool joins_alike(const DocScalar& scalar) {
  constexpr size_t kDigitsInLua = 14;
  if (scalar.is(DocScalar::Kind::kText)) return true;
  if (scalar.is(DocScalar::Kind::kInteger)) return scalar.text.size() <= kDigitsInLua;
  return scalar.is(DocScalar::Kind::kNumber) &&
         fmt::format("{:.14g}", std::strtod(scalar.text.c_str(), nullptr)) == python_text(scalar);
}

}  // namespace

bool Mapper::is_interpolated(const DocNode& node) const {
  return node.is_scalar() && node.text.find("${") != std::string::npos;
}

/// Makes relative references absolute while the position of the node is known.
void Mapper::make_absolute(DocNode& node, const std::string& path) {
  const std::string prefix = path.empty() ? "" : path + ".";
  if (is_interpolated(node)) {
    // What follows calls itself for each level.
    if (const int levels = nesting_of(node.text); levels > kMostNested)
      fail(ExitCode::kRecipe,
           "[import] {}: line {}: expected ${{...}} in at most {} levels, got {}; write out the inner ones",
           place_, node.line, kMostNested, levels);
    node.text = with_absolute_paths(node.text, path);
  }
  for (size_t i = 0; i < node.items.size(); ++i) make_absolute(node.items[i], prefix + std::to_string(i));
  for (auto& [key, value] : node.entries) make_absolute(value, prefix + key);
}

/// Replaces references to maps and lists by copies of their targets, since maps and lists have no locals.
void Mapper::inline_structures(DocNode& node, int depth) {
  budget_.take(depth);
  if (const std::optional<std::string> path = whole_reference(node)) {
    const DocNode* target = structure_at({"", node}, *path);
    if (target == nullptr || target->is_scalar()) return;
    const int line = node.line;
    const SourceLocation key = node.key, value = node.value;
    DocNode copy = *target;  // copied before the node is overwritten, in case the target contains it
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

/// Returns the target of a reference, or null. Broken ones are reported where they are used.
const DocNode* Mapper::structure_at(const DocEntry& entry, const std::string& path) {
  try {
    return root_.at(filled_in(entry, path, 0));
  } catch (const BrokenReference&) {
    return nullptr;
  }
}

/// Returns a path after resolving the references among its parts.
std::string Mapper::filled_in(const DocEntry& entry, const std::string& path, int depth) {
  if (path.find("${") == std::string::npos) return path;
  DocNode text;
  text.text = path;
  text.is_plain = false;
  text.line = entry.node.line;
  const DocNode found = resolved({entry.path, text}, depth + 1);
  return absolute_path(python_text(found), "");
}

/// Returns the path of a reference after following all references.
std::string Mapper::target_of(const DocEntry& entry, const std::string& reference, int depth) {
  if (depth > kMostSteps) break_off(entry, fmt::format("${{{}}} refers to itself", reference));
  const std::string path = filled_in(entry, reference, depth);
  if (path.find(':') != std::string::npos)
    break_off(entry, fmt::format("${{{}}} calls a resolver, which LLM Foundry does not have; write the value",
                                 path));
  const DocNode* target = root_.at(path);
  if (target == nullptr) break_off(entry, fmt::format("${{{}}} refers to a key that does not exist", path));
  const std::optional<std::string> next = whole_reference(*target);
  return next ? target_of(entry, *next, depth + 1) : path;
}

/// Returns a scalar with all its references resolved.
DocNode Mapper::resolved(const DocEntry& entry, int depth) {
  if (!is_interpolated(entry.node)) return entry.node;
  if (depth > kMostSteps) break_off(entry, brief(entry.node) + " refers to itself");
  if (is_unclosed(entry.node.text)) break_off(entry, "has a ${ that is never closed; \\${ is one as text");
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
    const DocNode& found = *root_.at(target);
    out.text += python_text(found.is_scalar() ? resolved({target, found}, depth + 1) : found);
    if (out.text.size() > 65536)
      fail(ExitCode::kRecipe, "[import] {}: line {}: the text grows beyond 64 KiB", place_, entry.node.line);
  }
  return out;
}

DocScalar Mapper::value(const DocNode* node) {
  if (node == nullptr) return {DocScalar::Kind::kNull, ""};
  if (!node->is_scalar()) return {DocScalar::Kind::kText, brief(*node)};
  return read_scalar(resolved({"", *node}, 0));
}

/// Returns the local for a path, which local_lines() declares.
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
  if (!entry.node.is_scalar()) {
    problem(entry, entry.node.is_list() ? "expected a value, found a list" : "expected a value, found a map");
    return "nil";
  }
  if (!is_interpolated(entry.node)) return literal(read_scalar(entry.node));
  if (is_unclosed(entry.node.text)) break_off(entry, "has a ${ that is never closed; \\${ is one as text");
  if (const std::optional<std::string> path = whole_reference(entry.node)) return reference(entry, *path);
  std::string out;
  for (const Piece& piece : pieces_of(entry.node.text)) {
    std::string part = lua_quoted(piece.text);
    if (piece.is_path) {
      const DocNode& found = *root_.at(target_of(entry, piece.text, 0));
      const bool alike = found.is_scalar() && joins_alike(value(&found));
      part = alike               ? reference(entry, piece.text)
             : found.is_scalar() ? lua_quoted(python_text(value(&found)))
                                 : lua_quoted(python_text(found));
    }
    out += (out.empty() ? "" : " .. ") + part;
  }
  return out;
}

std::string Mapper::expression_with(const DocEntry& entry, const std::string& suffix) {
  if (is_interpolated(entry.node)) return expression(entry) + " .. " + lua_quoted(suffix);
  return lua_quoted(text_of(&entry.node) + suffix);
}

std::string Mapper::expression_after(const std::string& prefix, const DocEntry& entry) {
  if (is_interpolated(entry.node)) return lua_quoted(prefix) + " .. " + expression(entry);
  return lua_quoted(prefix + text_of(&entry.node));
}

/// Adds locals for everything that a local depends on.
void Mapper::close_over_locals() {
  for (size_t before = 0; before != locals_.size();) {
    before = locals_.size();
    for (const auto& [path, local] : std::map<std::string, std::string>(locals_))
      expression({path, *root_.at(path)});
  }
}

/// Declares a local after those that it depends on. A variable that nothing uses becomes a comment.
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
      if (locals_.contains(target)) declare(header, done, target, *root_.at(target));
    }
    lua = fmt::format("local {} = {}", local->second, expression(entry));
  }
  header.comments_before(node.line);
  header.write(lua, node.line, node.argument > 0 ? fmt::format("argument {}", node.argument) : "",
               node.place());
}

/// Declares all locals; those of `variables` in the file's order, with its comments.
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
    mapper.problem(entry, "expected a time such as 100ba, 2ep or 0.5dur");
    return std::nullopt;
  }
  const bool as_it_is = mapper.is_interpolated(entry.node) && text == scalar.text;
  return as_it_is ? mapper.expression(entry) : lua_quoted(text);
}

}  // namespace

Convert duration_in(const char* unit) {
  return [=](Mapper& mapper, const DocEntry& entry) -> std::optional<std::string> {
    if (entry.node.is_scalar()) return duration_text(mapper, entry, unit);
    mapper.problem(entry, "expected a time");
    return std::nullopt;
  };
}

Convert durations_in(const char* unit) {
  return [=](Mapper& mapper, const DocEntry& entry) -> std::optional<std::string> {
    if (!entry.node.is_list()) {
      mapper.problem(entry, "expected a list of times");
      return std::nullopt;
    }
    std::string items;
    for (const DocNode& item : entry.node.items) {
      const std::optional<std::string> one = duration_in(unit)(mapper, {entry.path, item});
      if (!one) return std::nullopt;
      items += (items.empty() ? "" : ", ") + *one;
    }
    return "{ " + items + " }";
  };
}

}  // namespace tycho
