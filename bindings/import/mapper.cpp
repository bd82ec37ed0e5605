// Walks the keys of a file by their rows.
#include "bindings/import/mapper.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/base/absent.h"
#include "trainer/base/error.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

const Row* find_row(const Rows& rows, std::string_view key) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

std::string where(const DocNode& node) {
  return node.argument > 0 ? fmt::format("argument {}", node.argument) : fmt::format("line {}", node.line);
}

std::string shown_value(const DocEntry& entry) {
  return entry.node.is_scalar() ? " = " + brief(entry.node) : "";
}

}  // namespace

bool known_path(const Rows& rows, std::string_view path) {
  const size_t dot = std::min(path.find('.'), path.size());
  const Row* row = find_row(rows, path.substr(0, dot));
  if (row == nullptr) return false;
  return dot == path.size() ? row->rows.empty() : known_path(row->rows, path.substr(dot + 1));
}

Mapper::Mapper(DocNode root, std::string text, std::string place)
    : root_(std::move(root)),
      text_(std::move(text)),
      place_(std::move(place)),
      comments_(read_comments(text_)),
      out_(comments_),
      budget_(place_) {
  make_absolute(root_, "");
  inline_structures(root_, 0);
}

/// Allows the comments from the end of the previous entry to the end of the key's entry.
void Mapper::enter(LuaWriter& writer, const std::string& key) const {
  int first = 1;
  for (const auto& [name, node] : root_.entries) {
    if (name == key) return writer.enter(first, node.last_line);
    first = std::max(first, node.last_line + 1);
  }
}

void Mapper::walk_top(const Rows& rows) {
  for (const auto& [key, node] : root_.entries) {
    if (key == "variables") continue;
    enter(out_, key);
    DocNode one;
    one.kind = DocNode::Kind::kMap;
    one.entries = {{key, node}};
    walk({"", one}, rows);
  }
}

void Mapper::walk(const DocEntry& map, const Rows& rows) {
  if (map.node.is_scalar() && is_null(&map.node)) return;
  if (!map.node.is_map()) return problem(map, "expected a map of keys");
  for (const auto& [key, node] : map.node.entries) {
    const DocEntry entry = {map.path.empty() ? key : map.path + "." + key, node};
    if (const Row* row = find_row(rows, key)) {
      try {
        row->act(*this, entry);
      } catch (const BrokenReference& broken) {
        problem(entry, broken.said());
      }
      continue;
    }
    std::vector<std::string> known;
    for (const Row& one : rows) known.push_back(one.key);
    std::string absent = explain_ ? explain_(entry.path) : "";
    if (absent.empty()) absent = absent_feature(key);
    problem(entry, absent.empty() ? "unknown key" + did_you_mean(key, known) : absent,
            node.argument > 0 ? node.place() : node.key);
  }
}

void Mapper::emit(const DocEntry& entry, const std::string& target, const std::string& lua,
                  const std::string& comment) {
  out_.comments_before(entry.node.line);
  const bool is_field = out_.depth() > 0;
  const std::string by = entry.node.argument > 0 ? where(entry.node) : comment;
  out_.write(fmt::format("{} = {}{}", is_field ? lua_key(target) : "r." + target, lua, is_field ? "," : ""),
             entry.node.line, by, entry.node.place());
}

void Mapper::remark(const DocEntry& entry, const std::string& reason) {
  out_.comments_before(entry.node.line);
  const std::string key = entry.path.substr(entry.path.rfind('.') + 1);
  out_.write(fmt::format("-- {}: {}  ({})", out_.depth() > 0 ? key : entry.path, brief(entry.node), reason),
             entry.node.line, entry.node.argument > 0 ? where(entry.node) : "");
}

void Mapper::keep_comments(const DocEntry& entry) {
  out_.comments_before(entry.node.line);
  out_.write_comment(entry.node.line);
}

void Mapper::note(const DocEntry& entry, const std::string& text) {
  notes_.push_back(fmt::format("{}  {}: {}", where(entry.node), entry.path, text));
}

void Mapper::problem(const DocEntry& entry, const std::string& text) {
  problem(entry, text, entry.node.place());
}

void Mapper::problem(const DocEntry& entry, const std::string& text, const SourceLocation& place) {
  problems_.push_back({place_, place, fmt::format("{}{}: {}", entry.path, shown_value(entry), text)});
}

void Mapper::component(const DocEntry& entry, const std::string& target, const std::string& constructor,
                       const Rows& rows, const std::vector<std::string>& last_fields) {
  out_.comments_before(entry.node.line);
  const std::string made = constructor.empty() ? "" : constructor + " ";
  out_.open(fmt::format("{} = {}{{", out_.depth() > 0 ? lua_key(target) : "r." + target, made),
            entry.node.line, entry.node.place());
  Rows all = rows;
  all.push_back(elsewhere("name"));
  walk(entry, all);
  for (const std::string& field : last_fields) out_.write(field + ",", 0);
  out_.close(out_.depth() > 1 ? "}," : "}");
}

std::string Mapper::finish(const std::string& recipe_name, const std::string& system) {
  out_.enter(root_.last_line + 1, static_cast<int>(out_.num_file_lines()));
  out_.comments_before(static_cast<int>(out_.num_file_lines()) + 1);
  if (!problems_.empty()) {
    const size_t count = problems_.size();
    const std::string report = problem_report(problems_, {{place_, text_}});
    throw RecipeError(fmt::format("{}{} of {} cannot be imported; nothing was written.", report,
                                  count == 1 ? "1 key" : fmt::format("{} keys", count), place_),
                      problem_list(problems_));
  }
  std::vector<std::string> lines = {fmt::format("-- Imported from {}, {}.", place_, system),
                                    "local t = require \"tycho\"",
                                    fmt::format("local r = t.recipe {}", lua_quoted(recipe_name))};
  places_.resize(lines.size());
  for (const LuaWriter& part : {local_lines(), out_}) {
    if (!part.lines().empty() && !part.lines().front().empty()) lines.emplace_back(), places_.emplace_back();
    lines.insert(lines.end(), part.lines().begin(), part.lines().end());
    places_.insert(places_.end(), part.places().begin(), part.places().end());
  }
  while (lines.back().empty()) lines.pop_back();
  return fmt::format("{}\n\nreturn r\n", fmt::join(lines, "\n"));
}

// ---- rows ----

Row by(const char* key, std::function<void(Mapper&, const DocEntry&)> act, Rows rows) {
  return {key, std::move(act), std::move(rows)};
}

Row elsewhere(const char* key) {
  return by(key, [](Mapper& mapper, const DocEntry& entry) { mapper.keep_comments(entry); });
}

Row to(const char* key, const char* target, Convert convert) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
    if (const std::optional<std::string> lua = convert(mapper, entry)) mapper.emit(entry, target, *lua);
  });
}

Row to(const char* key, const char* target) { return to(key, target, as_is); }

Row left_out(const char* key, const char* reason) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) { mapper.remark(entry, reason); });
}

namespace {

std::string text_or_null(Mapper& mapper, const DocNode& node) {
  const DocScalar scalar = mapper.value(&node);
  return scalar.is(DocScalar::Kind::kNull) ? "null" : scalar.text;
}

}  // namespace

Row noted(const char* key, std::vector<std::string> neutral, const char* text) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    const std::string given = text_or_null(mapper, entry.node);
    if (std::find(neutral.begin(), neutral.end(), given) != neutral.end())
      return mapper.remark(entry, "as it is here");
    mapper.remark(entry, text);
    mapper.note(entry, text);
  });
}

Row only(const char* key, std::vector<std::string> values, const char* what_to_do) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    const bool holds =
        std::find(values.begin(), values.end(), text_or_null(mapper, entry.node)) != values.end();
    if (holds) return mapper.remark(entry, "as it is here");
    mapper.problem(entry, what_to_do);
  });
}

Row group(const char* key, Rows rows) {
  return by(
      key,
      [=](Mapper& mapper, const DocEntry& entry) {
        mapper.out().comments_before(entry.node.line);
        mapper.walk(entry, rows);
      },
      rows);
}

// ---- conversions ----

std::optional<std::string> as_is(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar()) return mapper.expression(entry);
  if (entry.node.is_map()) {
    mapper.problem(entry, "expected a value, found a map");
    return std::nullopt;
  }
  std::vector<std::string> items;
  for (const DocNode& item : entry.node.items) {
    const std::optional<std::string> one = as_is(mapper, {entry.path, item});
    if (!one) return std::nullopt;
    items.push_back(*one);
  }
  return items.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(items, ", "));
}

Convert count_of(const char* unit) {
  return [=](Mapper& mapper, const DocEntry& entry) -> std::optional<std::string> {
    const DocScalar scalar = mapper.value(&entry.node);
    if (!entry.node.is_scalar() || !scalar.is(DocScalar::Kind::kInteger)) {
      mapper.problem(entry, "expected a whole number");
      return std::nullopt;
    }
    if (mapper.is_interpolated(entry.node)) return mapper.expression(entry) + " .. " + lua_quoted(unit);
    return lua_quoted(scalar.text + unit);
  };
}

Convert words(std::vector<std::pair<std::string, std::string>> pairs) {
  return [=](Mapper& mapper, const DocEntry& entry) -> std::optional<std::string> {
    const std::string given = entry.node.is_scalar() ? mapper.text_of(&entry.node) : brief(entry.node);
    std::vector<std::string> known;
    for (const auto& [theirs, ours] : pairs) {
      if (given == theirs) return lua_quoted(ours);
      known.push_back(theirs);
    }
    const std::string absent = absent_feature(given);
    mapper.problem(
        entry, fmt::format("{}Tycho has {}", absent.empty() ? "" : absent + "; ", fmt::join(known, ", ")));
    return std::nullopt;
  };
}

}  // namespace tycho
