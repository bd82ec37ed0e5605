// Line by line: the file that is written appears under its name when all of it is there.
#include "host/data/map.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/define/row_function.h"
#include "host/data/input_options.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/byte_source.h"
#include "trainer/data/sources/json_line.h"
#include "trainer/data/storage/part_file.h"

namespace tycho {
namespace {

struct MapCounts {
  int64_t read = 0, written = 0, dropped = 0;
  SkippedRows skipped;
};

/// Calls `call` with every line that is not blank and its number.
void for_each_line(const std::string& path, const std::function<void(std::string_view, int64_t)>& call) {
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  std::string piece(size_t{1} << 20, '\0'), line;
  int64_t number = 0;
  const auto finish = [&] {
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string::npos) call(line, number);
    line.clear();
  };
  while (const size_t size = source->read(piece.data(), piece.size())) {
    std::string_view rest(piece.data(), size);
    for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      line += rest.substr(0, end);
      rest.remove_prefix(end + 1);
      finish();
    }
    line += rest;
    if (line.size() > kMostLineBytes)
      fail(ExitCode::kUnusable, "[{}:{}] a line has more than {} MiB; is it JSONL?", path, number + 1,
           kMostLineBytes >> 20);
  }
  finish();
}

Json row_of(std::string_view line, const std::string& place) {
  Json row = parse_json(line, place);
  if (!row.is_object())
    fail(ExitCode::kUnusable, "[{}] expected an object of JSON, got {}", place, row.type_name());
  return row;
}

/// Returns the rows that the function makes of a line; nullopt when it fails and the line is to be skipped.
std::optional<std::vector<Json>> rows_of(std::string_view line, const std::string& place,
                                         RowFunction& function, BadRows bad, SkippedRows& skipped) {
  try {
    return function(row_of(line, place), place);
  } catch (const Error& error) {
    if (bad == BadRows::kError || error.code() != ExitCode::kUnusable) throw;
    skipped.add(error.what());
    return std::nullopt;
  }
}

MapCounts write_rows(const InputFiles& files, RowFunction& function, BadRows bad, PartFile& part) {
  part.cut(0);  // of an attempt that was killed
  MapCounts counts;
  std::string pending;
  const auto write = [&](size_t at_least) {
    if (pending.size() < at_least) return;
    part.write(pending.data(), pending.size());
    pending.clear();
  };
  for (const InputFile& file : files.files)
    for_each_line(file.path, [&](std::string_view line, int64_t number) {
      const std::string place = fmt::format("{}:{}", file.path, number);
      const auto rows = rows_of(line, place, function, bad, counts.skipped);
      counts.read += 1;
      if (!rows) return;
      counts.dropped += rows->empty() ? 1 : 0;
      counts.written += std::ssize(*rows);
      for (const Json& row : *rows)
        pending += row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      write(size_t{1} << 20);
    });
  write(1);
  return counts;
}

}  // namespace

int map_data(const Arguments& arguments) {
  if (arguments.words.size() < 3)
    fail(ExitCode::kUsage,
         "[tycho data] map wants a Lua file and JSONL files or folders: tycho data map rows.lua raw.jsonl "
         "--out "
         "sft.jsonl");
  if (!arguments.has("out")) fail(ExitCode::kUsage, "[tycho data] map wants --out FILE.jsonl");
  const std::string out = arguments.text("out");
  std::vector<std::string> inputs;
  std::vector<PinArgument> fields;
  for (size_t i = 2; i < arguments.words.size(); ++i) {
    const std::string& word = arguments.words[i];
    if (is_override(word) && !std::filesystem::exists(word))
      fields.push_back({arguments.numbers[i], word});
    else
      inputs.push_back(word);
  }
  InputRules rules = input_rules(arguments);
  if (rules.extensions.empty()) rules.extensions = {"jsonl", "json"};
  const InputFiles files = find_inputs(inputs, rules);
  for (const InputFile& file : files.files)
    if (file.format != TextFormat::kJsonl)
      fail(ExitCode::kUsage, "[tycho data] map reads JSONL, and {} is something else", file.path);
  RowFunction function(arguments.words[1], fields);
  auto part = PartFile::claim(out + ".part", [] { return false; }, {},
                              {"free room on that disk, or choose another --out", "choose another --out"});
  MapCounts counts;
  try {
    counts = write_rows(files, function, rules.bad_rows, *part);
  } catch (...) {
    part->remove();
    throw;
  }
  part->publish(out);
  if (const std::string text = counts.skipped.text(); !text.empty())
    fmt::print(stderr, "warning: {}\n", text);
  if (arguments.has("json")) {
    const Json json = {{"read", counts.read},
                       {"written", counts.written},
                       {"dropped", counts.dropped},
                       {"skipped_rows", counts.skipped.count}};
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}: {} rows of {}, {} left out\n", out, counts.written, counts.read, counts.dropped);
  return 0;
}

}  // namespace tycho
