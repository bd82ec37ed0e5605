// One data set by its URL, or all remote data of a recipe.
#include "host/data/preload.h"

#include <unistd.h>

#include <cstdio>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/define/recipe.h"
#include "host/text_table.h"
#include "trainer/base/bytes.h"
#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/data/remote/preload.h"

namespace tycho {
namespace {

void add_remotes(const DataConfig& data, std::vector<CacheSpec>& specs) {
  if (!data.is<MdsConfig>()) return;
  for (const MdsConfig& stream : data.as<MdsConfig>().each_stream()) {
    if (stream.remote.empty()) continue;
    if (stream.cache_limit)
      fail(ExitCode::kUsage,
           "[data] {} is not fetched ahead: its cache_limit would remove it again. Leave cache_limit out, if "
           "the disk "
           "has room",
           stream.remote);
    specs.push_back(cache_spec(stream));
  }
}

std::vector<CacheSpec> remotes_of_recipe(const Arguments& arguments) {
  Arguments recipe = arguments;
  recipe.words.erase(recipe.words.begin());
  recipe.numbers.erase(recipe.numbers.begin());
  const TrainConfig config = resolve_recipe(recipe_request(recipe)).config;
  std::vector<CacheSpec> specs;
  add_remotes(config.train_data, specs);
  for (const DataStageConfig& stage : config.data_stages) add_remotes(stage.data, specs);
  for (const auto& [name, data] : config.eval_data) add_remotes(data, specs);
  if (specs.empty())
    fail(ExitCode::kUsage,
         "[data] the recipe has no data with a remote; name it: tycho data preload URL DIR");
  return specs;
}

std::vector<CacheSpec> remotes_of_words(const Arguments& arguments) {
  std::vector<CacheSpec> specs;
  std::vector<std::string> splits = {""};
  if (!arguments.text("split").empty()) splits = arguments.list("split");
  for (const std::string& split : splits)
    specs.push_back(
        cache_spec({.local_dir = arguments.words[2], .remote = arguments.words[1], .split = split}));
  return specs;
}

void show(const PreloadProgress& progress) {
  const auto left_s = static_cast<int64_t>(progress.left_s);
  fmt::print(stderr, "\r{} of {}  {}/s  {}:{:02d} left    ",
             human_bytes(static_cast<double>(progress.bytes_done)),
             human_bytes(static_cast<double>(progress.bytes_total)), human_bytes(progress.bytes_per_s),
             left_s / 60, left_s % 60);
}

std::string checked_text(const PreloadReport& report) {
  if (report.with_checksum == report.shards) return "sizes and checksums";
  return report.with_checksum == 0 ? "sizes" : fmt::format("sizes, {} checksums", report.with_checksum);
}

}  // namespace

int preload_data(const Arguments& arguments) {
  const std::string local_rank = environment_variable("SLURM_LOCALID");
  if (!local_rank.empty() && local_rank != "0") return 0;  // the first task of the node does it
  word(arguments, 1, "a URL and a folder, or a recipe");
  const bool is_recipe = arguments.words.size() == 2 || is_override(arguments.words[2]);
  if (!is_recipe) no_more_words(arguments, 3);
  const std::vector<CacheSpec> specs = is_recipe ? remotes_of_recipe(arguments) : remotes_of_words(arguments);
  const auto threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  const bool live = isatty(STDERR_FILENO) != 0;
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"remote", "folder", "shards", "bytes", "fetched", "rate", "verified"}};
  std::set<std::pair<std::string, std::string>> done;
  for (const CacheSpec& spec : specs) {
    if (!done.emplace(spec.remote, spec.dir).second) continue;
    const PreloadReport report = preload(spec, threads == 0 ? 8 : threads, live ? show : nullptr);
    if (live) fmt::print(stderr, "\r{:60}\r", "");
    const double rate = static_cast<double>(report.fetched_bytes) / report.seconds;
    list.push_back({{"remote", report.remote},
                    {"dir", report.dir},
                    {"shards", report.shards},
                    {"bytes", report.bytes},
                    {"fetched_shards", report.fetched_shards},
                    {"fetched_bytes", report.fetched_bytes},
                    {"with_checksum", report.with_checksum},
                    {"seconds", report.seconds}});
    rows.push_back({report.remote, report.dir, fmt::to_string(report.shards),
                    human_bytes(static_cast<double>(report.bytes)),
                    human_bytes(static_cast<double>(report.fetched_bytes)), human_bytes(rate) + "/s",
                    checked_text(report)});
  }
  fmt::print("{}", arguments.has("json") ? list.dump(2) + "\n" : text_table(rows));
  return 0;
}

}  // namespace tycho
