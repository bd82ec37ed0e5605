// Stricter than Python's reader, which ignores columns that are missing at the end of a line.
#include "trainer/data/mds/line_format.h"

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/mds_value.h"

namespace tycho {
namespace {

std::string value_of_json(const Json& object, const MdsColumn& column, const std::string& place) {
  const auto found = object.find(column.name);
  if (found == object.end())
    fail(ExitCode::kUnusable, "[mds] {} has no column \"{}\"; copy the shard again", place, column.name);
  const bool is_whole = found->is_number_integer();
  if (column.encoding == "str" && found->is_string()) return found->get<std::string>();
  if (column.encoding == "str_int" && is_whole) return found->dump();
  if (column.encoding == "str_float" && found->is_number()) return python_float(found->get<double>());
  fail(ExitCode::kUnusable, "[mds] {}: column \"{}\" must be {}, got {}", place, column.name,
       column.encoding == "str"       ? "a text"
       : column.encoding == "str_int" ? "a whole number of at most 64 bits"
                                      : "a number",
       found->is_string() ? "a text" : found->dump().substr(0, 40));
}

std::vector<std::string> split_json(const std::vector<MdsColumn>& columns, std::string_view line,
                                    const std::string& place) {
  const Json object = parse_json(line, place);
  if (!object.is_object())
    fail(ExitCode::kUnusable, "[mds] {} must be a JSON object; copy the shard again", place);
  std::vector<std::string> values;
  for (const MdsColumn& column : columns) values.push_back(value_of_json(object, column, place));
  return values;
}

}  // namespace

std::string encoding_of_line_value(const MdsColumn& column) {
  if (column.encoding == "str") return "str";
  if (column.encoding == "int") return "str_int";
  if (column.encoding == "float") return "str_float";
  fail(ExitCode::kUnusable,
       "[mds] column \"{}\" has the encoding \"{}\", but values of such shards are str, int or float",
       column.name, column.encoding);
}

std::vector<std::string> split_line(const LineFormat& format, const std::vector<MdsColumn>& columns,
                                    std::string_view line, const std::string& place) {
  if (!line.ends_with(format.newline))
    fail(ExitCode::kUnusable, "[mds] {} does not end at the end of a line; copy the shard again", place);
  line.remove_suffix(format.newline.size());
  if (format.is_json) return split_json(columns, line, place);
  std::vector<std::string> values;
  while (values.size() <= columns.size()) {
    const size_t end = line.find(format.separator);
    values.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + format.separator.size());
  }
  if (values.size() != columns.size())
    fail(ExitCode::kUnusable,
         "[mds] {} has {} values, expected one for each of {} columns; copy the shard again", place,
         values.size() > columns.size() ? "more" : std::to_string(values.size()), columns.size());
  for (size_t i = 0; i < columns.size(); ++i)
    check_mds_value(columns[i].encoding, values[i],
                    fmt::format("[mds] {}: column \"{}\"", place, columns[i].name));
  return values;
}

}  // namespace tycho
