// Lays out recipes that are made from other files.
#include "bindings/import/lua_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace tycho {
namespace {

/// Returns a value of a config as Lua; of a group only the fields that differ from `usual`.
std::string lua_value(const Json& value, const Json& usual) {
  if (value.is_string()) return lua_quoted(value.get<std::string>());
  if (value.is_object()) return "{ " + lua_fields(value, usual) + " }";
  if (!value.is_array()) return value.dump();
  std::string items;
  for (const Json& item : value) items += (items.empty() ? "" : ", ") + lua_value(item, Json::object());
  return "{ " + items + " }";
}

}  // namespace

std::string lua_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\{:03}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string lua_name(const std::string& text) {
  static constexpr std::array kTaken = {
      "and",   "break", "do",  "else", "elseif", "end",    "false", "for",  "function", "goto",  "if", "in",
      "local", "nil",   "not", "or",   "repeat", "return", "then",  "true", "until",    "while", "t",  "r"};
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "_" + name;
  if (std::any_of(kTaken.begin(), kTaken.end(), [&](const char* one) { return name == one; })) name += "_";
  return name;
}

std::string lua_key(const std::string& name) {
  return lua_name(name) == name ? name : "[" + lua_quoted(name) + "]";
}

std::string lua_path(const std::string& variable, const std::string& path) {
  std::string out = variable;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    const std::string part = lua_key(path.substr(at, dot - at));
    out += (part[0] == '[' ? "" : ".") + part;
    at = dot + 1;
  }
  return out;
}

std::string lua_fields(const Json& fields, const Json& usual) {
  std::string out;
  for (const auto& [key, value] : fields.items()) {
    if (key == "kind" || value.is_null() || (usual.contains(key) && usual.at(key) == value)) continue;
    out +=
        (out.empty() ? "" : ", ") + lua_key(key) + " = " + lua_value(value, usual.value(key, Json::object()));
  }
  return out;
}

void LuaWriter::enter(int first, int last) {
  cursor_ = first;
  last_ = std::min(last, static_cast<int>(comments_.size()));
}

void LuaWriter::comments_before(int line) {
  for (; cursor_ < line && cursor_ <= last_; ++cursor_) {
    const CommentLine& here = comments_[static_cast<size_t>(cursor_) - 1];
    const bool after_blank = lines_.empty() || lines_.back().empty();
    if (here.is_blank && depth_ == 0 && !after_blank) lines_.emplace_back(), places_.emplace_back();
    if (!here.whole.empty()) write(here.whole, 0);
  }
}

std::string LuaWriter::trailing(int line) const {
  const bool is_here = line > 0 && line <= static_cast<int>(comments_.size());
  return is_here ? comments_[static_cast<size_t>(line) - 1].trailing : "";
}

void LuaWriter::write(const std::string& text, int line, const std::string& comment,
                      const SourceLocation& place) {
  std::string out = std::string(static_cast<size_t>(2 * depth_), ' ') + text;
  for (const std::string& one : {trailing(line), comment.empty() ? "" : "-- " + comment})
    if (!one.empty()) out += "  " + one;
  // A key or a value with a line break must not leave its comment.
  for (char& c : out)
    if (c == '\n' || c == '\r') c = ' ';
  lines_.push_back(out);
  places_.push_back(place);
  if (line >= cursor_ && line <= last_) cursor_ = line + 1;
}

void LuaWriter::write_comment(int line) {
  const std::string comment = trailing(line);
  if (!comment.empty()) write(comment, 0);
}

void LuaWriter::open(const std::string& text, int line, const SourceLocation& place) {
  write(text, line, "", place);
  ++depth_;
}

void LuaWriter::close(const std::string& text) {
  --depth_;
  write(text, 0);
}

}  // namespace tycho
