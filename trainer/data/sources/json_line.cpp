// Parses a line once and keeps only the field, without building a tree of the rest.
#include "trainer/data/sources/json_line.h"

#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

constexpr size_t kFieldsShown = 12;

/// Callbacks for nlohmann's parser.
class FieldFinder {
 public:
  explicit FieldFinder(const std::string& field) : field_(field) {}

  bool null() { return value("null"); }
  bool boolean(bool) { return value("true or false"); }
  bool number_integer(int64_t) { return value("a number"); }
  bool number_unsigned(uint64_t) { return value("a number"); }
  bool number_float(double, const std::string&) { return value("a number"); }
  bool binary(std::vector<char>&) { return value("binary"); }
  bool string(std::string& text) {
    if (is_field()) line_.text = std::move(text);
    return value("a string");
  }
  bool start_object(size_t) {
    value("an object");
    ++depth_;
    return true;
  }
  bool start_array(size_t) {
    value("a list");
    ++depth_;
    return true;
  }
  bool end_object() { return --depth_, true; }
  bool end_array() { return --depth_, true; }
  bool key(std::string& name) {
    if (depth_ != 1) return true;
    at_field_ = name == field_;
    if (line_.names.size() < kFieldsShown) line_.names.push_back('"' + name + '"');
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    line_.error_at = position;
    const std::string_view what = error.what();
    const size_t colon = what.find(": ");
    line_.error = colon == std::string_view::npos ? what : what.substr(colon + 2);
    return false;
  }

  JsonLine take() { return std::move(line_); }

 private:
  bool is_field() const { return depth_ == 1 && at_field_; }
  bool value(const char* kind) {
    if (depth_ == 0) line_.kind = kind;
    if (is_field()) {
      line_.field_kind = kind;
      if (line_.field_kind != "a string") line_.text.reset();
    }
    return true;
  }

  const std::string& field_;
  JsonLine line_;
  int64_t depth_ = 0;
  bool at_field_ = false;
};

}  // namespace

JsonLine read_json_line(std::string_view line, const std::string& field) {
  FieldFinder finder(field);
  SortedJson::sax_parse(line.begin(), line.end(), &finder);
  return finder.take();
}

std::string text_of_json_line(std::string_view text, const std::string& field, const std::string& place) {
  JsonLine line = read_json_line(text, field);
  if (!line.error.empty()) {
    fail(ExitCode::kUnusable,
         "[data] {}: not JSON at byte {} of the line ({}); a JSONL file has one complete object per line",
         place, line.error_at, line.error);
  }
  if (line.kind != "an object")
    fail(ExitCode::kUnusable, "[data] {}: expected an object with the field \"{}\", got {}", place, field,
         line.kind);
  if (line.field_kind.empty()) {
    fail(ExitCode::kUnusable,
         "[data] {} has no field \"{}\"; it has {}. Name the one that contains the text: --field NAME", place,
         field, line.names.empty() ? "none" : fmt::format("{}", fmt::join(line.names, ", ")));
  }
  if (!line.text) {
    fail(ExitCode::kUnusable,
         "[data] {}: field \"{}\" must be a string, is {}; correct the line or leave it out", place, field,
         line.field_kind);
  }
  return std::move(*line.text);
}

}  // namespace tycho
