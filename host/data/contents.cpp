// Each reads one split, or every split of a folder.
#include "host/data/contents.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "host/data/length_table.h"
#include "host/data/texts.h"
#include "host/text_table.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_tokens.h"
#include "trainer/data/mds/mds_value.h"
#include "trainer/data/mds/merge_index.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/dataset_damage.h"
#include "trainer/data/prepare/dataset_stats.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "a data set's folder";

int num_threads(const Arguments& arguments) {
  const auto threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Returns the tokenizer that is named, or the one that `tycho data convert` put into the data set; null when
/// there is neither.
std::unique_ptr<Tokenizer> tokenizer_of(const Arguments& arguments, const std::string& split_dir) {
  if (arguments.has("tokenizer")) return load_tokenizer(arguments.text("tokenizer"));
  std::error_code error;
  for (const fs::path& dir : {fs::path(split_dir), fs::path(split_dir) / ".."})
    for (const char* name : {kTokenizerFile, kSentencePieceFile})
      if (fs::exists(dir / name, error)) return load_tokenizer((dir / name).lexically_normal().string());
  return nullptr;
}

Separators chosen_separators(const Arguments& arguments, const std::string& split_dir,
                             const Tokenizer* tokenizer) {
  const auto token = [&](const char* option) {
    return static_cast<int32_t>(arguments.integer(option, 0, INT32_MAX));
  };
  if (arguments.has("eos-token") && arguments.has("bos-token"))
    fail(ExitCode::kUsage,
         "[data] documents either end or begin with a token: leave --bos-token or --eos-token out");
  if (arguments.has("eos-token")) return {token("eos-token"), {}};
  if (arguments.has("bos-token")) return {{}, token("bos-token")};
  return tokenizer != nullptr ? separators_of(split_dir, *tokenizer) : Separators{};
}

Json stats_json(const std::string& dir, const DatasetStats& stats) {
  Json json = {{"dir", dir},
               {"samples", stats.samples},
               {"tokens", stats.tokens},
               {"distinct_tokens", stats.distinct_tokens},
               {"text_tokens", stats.text_tokens},
               {"text_bytes", stats.text_bytes},
               {"sample_tokens", lengths_json(stats.sample_tokens)}};
  if (stats.ends_with) json["eos_token"] = *stats.ends_with;
  if (stats.begins_with) json["bos_token"] = *stats.begins_with;
  if (stats.ends_with || stats.begins_with) json["document_tokens"] = lengths_json(stats.document_tokens);
  return json;
}

void print_stats(const std::string& dir, const DatasetStats& stats, const Tokenizer* tokenizer) {
  fmt::print("{}: {} tokens, {} of them different", dir, human_count(static_cast<double>(stats.tokens)),
             stats.distinct_tokens);
  if (tokenizer != nullptr)
    fmt::print(
        " of {}; {} of text, {:.2f} bytes per token", tokenizer->size(),
        human_bytes(static_cast<double>(stats.text_bytes)),
        static_cast<double>(stats.text_bytes) / static_cast<double>(std::max<int64_t>(stats.text_tokens, 1)));
  fmt::print("\n");
  print_lengths("samples", "tokens", stats.sample_tokens);
  if (stats.ends_with || stats.begins_with)
    print_lengths("documents", "tokens", stats.document_tokens);
  else
    fmt::print("documents: not counted; name what ends each (--eos-token N) or begins it (--bos-token N)\n");
}

bool holds_tokens(const std::vector<DatasetInfo>& splits) {
  return std::any_of(splits.begin(), splits.end(), [](const DatasetInfo& info) {
    return std::find(info.column_names.begin(), info.column_names.end(), "tokens") != info.column_names.end();
  });
}

/// Prints lines without terminal controls.
void print_text(const std::string& text) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    fmt::print("{}\n", printable(std::string_view(text).substr(begin, end - begin), true));
    begin = end + 1;
  }
}

Json sample_json(MdsReader& reader, int64_t sample, const Tokenizer* tokenizer) {
  constexpr int64_t kMostElements = 16;
  const auto values = reader.read(sample);
  const auto& columns = reader.index().shards[0].columns;
  Json json = {{"sample", sample}, {"place", reader.name_of(sample)}};
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string place =
        fmt::format("[data] column \"{}\" of {}", columns[i].name, reader.name_of(sample));
    if (columns[i].name == "tokens") {
      const std::vector<int32_t> tokens = mds_tokens(columns[i].encoding, values[i], place);
      json["num_tokens"] = tokens.size();
      if (tokenizer != nullptr)
        json["text"] = tokenizer->decode(tokens);
      else
        json["tokens"] = tokens;
    } else {
      json["columns"][columns[i].name] = show_mds_value(columns[i].encoding, values[i], kMostElements, place);
    }
  }
  return json;
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_sample(const Json& sample) {
  fmt::print("--- {}", sample["place"].get<std::string>());
  if (sample.contains("num_tokens")) fmt::print(", {} tokens", sample["num_tokens"].get<int64_t>());
  fmt::print("\n");
  if (sample.contains("text")) print_text(sample["text"].get<std::string>());
  if (sample.contains("tokens"))
    fmt::print("{}\n", fmt::join(sample["tokens"].get<std::vector<int32_t>>(), " "));
  if (!sample.contains("columns")) return;
  for (const auto& [name, value] : sample["columns"].items())
    print_text(name + ": " +
               (value.is_string() ? value.get<std::string>()
                                  : value.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

}  // namespace

void report_damage(const std::vector<std::string>& findings) {
  if (findings.empty()) return;
  std::fflush(stdout);
  fail(ExitCode::kUnusable,
       "[data] {} {} found in the data; copy the files again, or convert the text again:\n  {}",
       findings.size(), findings.size() == 1 ? "problem" : "problems", fmt::join(findings, "\n  "));
}

int verify_data(const Arguments& arguments) {
  const std::vector<DatasetInfo> splits = dataset_info(word(arguments, 1, kFolder));
  no_more_words(arguments, 2);
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"split", "shards", "samples", "bytes", "checksums", "problems", "seconds"}};
  std::vector<std::string> findings, absences;
  for (const DatasetInfo& info : splits) {
    const MdsIndex index = read_mds_index(info.dir);
    const auto checksums = std::count_if(index.shards.begin(), index.shards.end(),
                                         [](const MdsShard& shard) { return shard.has_checksum(); });
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::string> found =
        find_damage(info.dir, arguments.has("quick"), num_threads(arguments));
    const double seconds = seconds_since(start);
    const int64_t absent = num_absent_shards(info.dir);
    if (absent > 0)
      absences.push_back(
          fmt::format("{}: {} of {} shards are not in this cache, and were not checked; a run fetches them "
                      "when it needs them",
                      info.dir, absent, info.shards));
    findings.insert(findings.end(), found.begin(), found.end());
    list.push_back({{"dir", info.dir},
                    {"shards", info.shards},
                    {"absent_shards", absent},
                    {"samples", info.samples},
                    {"bytes", info.bytes},
                    {"with_checksum", checksums},
                    {"seconds", seconds},
                    {"damage", found}});
    rows.push_back({info.dir, fmt::to_string(info.shards), fmt::to_string(info.samples),
                    human_bytes(static_cast<double>(info.bytes)),
                    fmt::format("{} of {}", checksums, info.shards), fmt::to_string(found.size()),
                    fmt::format("{:.1f}", seconds)});
  }
  fmt::print("{}", arguments.has("json") ? json_text(list) : text_table(rows));
  if (!arguments.has("json"))
    for (const std::string& line : absences) fmt::print("{}\n", line);
  report_damage(findings);
  return 0;
}

int show_data_stats(const Arguments& arguments) {
  if (!is_converted(word(arguments, 1, "a data set's folder, or files of texts")))
    return show_text_stats(arguments);
  const std::vector<DatasetInfo> splits = dataset_info(word(arguments, 1, kFolder));
  if (!holds_tokens(splits)) return show_text_stats(arguments);
  no_more_words(arguments, 2);
  Json list = Json::array();
  for (const DatasetInfo& info : splits) {
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(arguments, info.dir);
    const DatasetStats stats =
        dataset_stats(info.dir, tokenizer.get(), chosen_separators(arguments, info.dir, tokenizer.get()));
    if (arguments.has("json"))
      list.push_back(stats_json(info.dir, stats));
    else
      print_stats(info.dir, stats, tokenizer.get());
  }
  if (arguments.has("json")) fmt::print("{}", json_text(list));
  return 0;
}

int show_samples(const Arguments& arguments) {
  const DatasetInfo info = dataset_info(word(arguments, 1, kFolder)).front();
  no_more_words(arguments, 2);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(arguments, info.dir);
  MdsReader reader(read_mds_index(info.dir), VerifyShards::kOnce, RawShards::kInMemory);
  const int64_t samples = reader.index().num_samples(), from = arguments.integer("from", 0);
  if (from >= samples)
    fail(ExitCode::kUsage, "[data] {} has {} samples, so --from is at most {}, got {}", info.dir, samples,
         samples - 1, from);
  const int64_t end = std::min(samples, from + arguments.integer("number", 1, INT32_MAX));
  Json list = Json::array();
  for (int64_t sample = from; sample < end; ++sample) {
    Json json = sample_json(reader, sample, tokenizer.get());
    if (arguments.has("json"))
      list.push_back(std::move(json));
    else
      print_sample(json);
  }
  if (arguments.has("json")) fmt::print("{}", json_text(list));
  return 0;
}

int merge_data(const Arguments& arguments) {
  const std::string& dir = word(arguments, 1, "the folder of the data sets to merge");
  std::vector<std::string> parts(arguments.words.begin() + 2, arguments.words.end());
  if (parts.empty()) parts = find_parts(dir);
  const MergedIndex merged = merge_indexes(real_files(), dir, parts);
  if (arguments.has("json"))
    fmt::print(
        "{}",
        json_text({{"dir", dir}, {"parts", parts}, {"shards", merged.shards}, {"samples", merged.samples}}));
  else
    fmt::print("{}/index.json names {} shards with {} samples, of {} folders: {}\n", dir, merged.shards,
               merged.samples, merged.parts, fmt::join(parts, ", "));
  return 0;
}

}  // namespace tycho
