// A table of all records: step, time, and a column for each number.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/loggers/background_sink.h"
#include "trainer/loggers/sink.h"
#include "trainer/metrics/format.h"
#include "trainer/recipe/run_name.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstColumns = "step,time";

/// Returns a name as a cell: quoted where it contains a character that would end one (RFC 4180).
std::string cell(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool doubled = quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"';
    if (doubled)
      cells.back() += line[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

std::optional<int64_t> step_of(std::string_view row) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), step);
  if (error != std::errc() || end == row.data() + row.size() || *end != ',') return std::nullopt;
  return step;
}

class CsvWriter final : public RecordWriter {
 public:
  CsvWriter(const CsvSinkConfig& config, const SinkTarget& place) : given_(config.file), place_(place) {}

  void start(const RunInfo& run) override {
    path_ = given_.empty() ? place_.run_dir + "/metrics.csv" : with_run_name(given_, run.run_name);
    if (const fs::path parent = fs::path(path_).parent_path(); !parent.empty())
      make_dirs(place_.files, parent.string());
    read_header();
    rewrite([](int64_t) { return true; });
  }

  void resume(int64_t step) override {
    rewrite([&](int64_t row) { return row <= step; });
  }

  void write(const std::vector<MetricRecord>& records) override {
    const size_t num_columns = columns_.size();
    for (const MetricRecord& record : records)
      for (const auto& [name, value] : record.numbers) column_of(name);
    if (columns_.size() > num_columns) rewrite([](int64_t) { return true; });
    std::string rows;
    for (const MetricRecord& record : records) rows += row_of(record);
    file_->write(rows.data(), rows.size());
  }

 private:
  size_t column_of(const std::string& name) {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found != columns_.end()) return static_cast<size_t>(found - columns_.begin());
    columns_.push_back(name);
    return columns_.size() - 1;
  }

  std::string row_of(const MetricRecord& record) {
    std::vector<std::string> cells(columns_.size());
    for (const auto& [name, value] : record.numbers) cells[column_of(name)] = exact_text(value);
    std::string row = fmt::format("{},{:.6f}", record.step, record.time_s);
    for (const std::string& text : cells) row += "," + text;
    return row + "\n";
  }

  // The columns of an earlier attempt stay. A file of anything else is left alone.
  void read_header() {
    std::ifstream file(path_);
    std::string header, row;
    if (!std::getline(file, header)) return;
    if (!header.starts_with(kFirstColumns))
      fail(ExitCode::kStorage,
           "[csv] {} is not a table of t.log.csv: its first line does not begin with {}; write another file",
           path_, kFirstColumns);
    if (place_.attempt == 1 && std::getline(file, row))
      fail(ExitCode::kStorage, "[csv] {} has rows of another run; write another file, or {} into its name",
           path_, kRunNameMark);
    const std::vector<std::string> names = cells_of(header);
    columns_.assign(names.begin() + std::min<std::ptrdiff_t>(2, std::ssize(names)), names.end());
  }

  // Rewrites the table under the present header, with the rows whose step is kept, and opens it to append.
  // A row that was cut by a kill does not end in a newline, and is left out.
  void rewrite(const std::function<bool(int64_t)>& keeps) {
    std::string text = std::string(kFirstColumns);
    for (const std::string& name : columns_) text += "," + cell(name);
    text += "\n";
    const std::string old = fs::exists(path_) ? read_file(path_) : "";
    size_t begin = old.find('\n');
    const size_t num_commas = columns_.size() + 1;
    while (begin != std::string::npos && ++begin < old.size()) {
      const size_t end = old.find('\n', begin);
      if (end == std::string::npos) break;
      const std::string_view row(old.data() + begin, end - begin);
      const auto commas = static_cast<size_t>(std::count(row.begin(), row.end(), ','));
      const std::optional<int64_t> step = step_of(row);
      if (step && commas <= num_commas && keeps(*step))
        text.append(row).append(num_commas - commas, ',').append("\n");
      begin = end;
    }
    write_file_atomically(place_.files, path_, text);
    file_ = place_.files.append(path_);
  }

  const std::string given_;
  const SinkTarget place_;
  std::string path_;
  std::vector<std::string> columns_;  // columns after step and time
  std::unique_ptr<OutputFile> file_;
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const CsvSinkConfig& config, const SinkTarget& place) {
  return make_background_sink("t.log.csv", config.names, std::make_unique<CsvWriter>(config, place));
}

}  // namespace tycho
