// One data set by its URL, or all remote data of a recipe.
#include "host/data/preload.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/define/recipe.h"
#include "host/data/progress_line.h"
#include "host/recipe_words.h"
#include "host/text_table.h"
#include "trainer/base/bytes.h"
#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/chat/mds_rows.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/mds/preload.h"
#include "trainer/data/sources/lent_file.h"
#include "trainer/data/tokenizer/local_tokenizer.h"
#include "trainer/hub/hub_files.h"
#include "trainer/huggingface/hf_folder.h"

namespace tycho {
namespace {

/// One item to copy: a data set, or files.
struct Copy {
  std::string remote, to;
  std::function<PreloadReport()> make;
};

/// State shared by all copies.
struct Copying {
  int threads = 8;
  ProgressLine line;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::filesystem::file_time_type file_start = std::filesystem::file_time_type::clock::now();
};

Copy copy_of(const CacheSpec& spec, Copying& copying) {
  const auto show = [&copying](const PreloadProgress& progress) {
    copying.line.show([&] {
      const auto left_s = static_cast<int64_t>(progress.left_s);
      return fmt::format("{} of {}  {}/s  {}:{:02d} left",
                         human_bytes(static_cast<double>(progress.bytes_done)),
                         human_bytes(static_cast<double>(progress.bytes_total)),
                         human_bytes(progress.bytes_per_s), left_s / 60, left_s % 60);
    });
  };
  return {spec.remote, spec.dir, [=, threads = copying.threads] { return preload(spec, threads, show); }};
}

/// Adds the bytes of a file, also to what was fetched if it is newer than this command.
void add_bytes(const std::filesystem::path& path, const Copying& copying, PreloadReport& report) {
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  report.bytes += bytes;
  if (std::filesystem::last_write_time(path) < copying.file_start) return;
  ++report.fetched_shards;
  report.fetched_bytes += bytes;
}

/// Describes a copy of files that `fetch` downloads to these paths, one after the other. A file to train on
/// is already there: reading the recipe has fetched it.
Copy copy_of_files(const std::string& remote, const std::string& to, const std::vector<std::string>& paths,
                   bool with_checksums, const Copying& copying, const std::function<void()>& fetch) {
  return {remote, to, [=, &copying] {
            PreloadReport report{.remote = remote, .dir = to, .shards = std::ssize(paths)};
            if (with_checksums) report.with_checksum = report.shards;
            fetch();
            report.seconds = seconds_since(copying.start);
            for (const std::string& path : paths) add_bytes(path, copying, report);
            return report;
          }};
}

/// Describes files of the hub that `fetch` puts into its cache; it returns the path of a file or a folder.
Copy copy_of_hub(const std::string& name, const Copying& copying, const std::function<std::string()>& fetch) {
  return {name, "", [=, &copying] {
            namespace fs = std::filesystem;
            PreloadReport report{.remote = name, .dir = fetch()};
            std::vector<fs::path> paths = {report.dir};
            if (fs::is_directory(report.dir))
              paths.assign(fs::directory_iterator(report.dir), fs::directory_iterator());
            for (const fs::path& path : paths) {
              if (!fs::is_regular_file(path)) continue;
              ++report.shards, ++report.with_checksum;
              add_bytes(path, copying, report);
            }
            report.seconds = seconds_since(copying.start);
            return report;
          }};
}

/// Describes the files of the hub that a data set without a remote names.
template <class Data>
Copy copy_of_hub_data(const Data& data, const Copying& copying) {
  return copy_of_hub(data.path, copying, [data] {
    std::string path;
    for (const InputFile& file : input_files(data).files) path = LentFile(file).path();
    return data.path.ends_with(std::filesystem::path(path).filename().string())
               ? path
               : std::filesystem::path(path).parent_path().string();
  });
}

void add_copies(const MdsConfig& data, Copying& copying, std::vector<Copy>& copies) {
  for (const MdsConfig& stream : data.each_stream()) {
    if (stream.remote.empty()) continue;
    if (stream.cache_limit)
      fail(ExitCode::kUsage,
           "[data] {} is not fetched ahead: its cache_limit would remove it again. Leave cache_limit out, if "
           "the disk has room",
           stream.remote);
    copies.push_back(copy_of(cache_spec(stream), copying));
  }
}

void add_copies(const ChatConfig& data, Copying& copying, std::vector<Copy>& copies) {
  if (is_hub_name(data.path)) copies.push_back(copy_of_hub_data(data, copying));
  if (data.remote.empty()) return;
  if (const auto spec = rows_cache(data))
    copies.push_back(copy_of(*spec, copying));
  else
    copies.push_back(copy_of_files(data.remote, data.path, {data.path}, !data.remote_hash.empty(), copying,
                                   [data] { fetch_rows(data); }));
}

void add_copies(const TextConfig& data, Copying& copying, std::vector<Copy>& copies) {
  if (is_hub_name(data.path)) copies.push_back(copy_of_hub_data(data, copying));
  if (data.remote.empty()) return;
  std::vector<std::string> paths;
  for (const std::string& name : data.remote_files) paths.push_back(data.path + "/" + name);
  if (paths.empty()) paths = {data.path};
  copies.push_back(copy_of_files(data.remote, data.path, paths,
                                 !data.remote_hash.empty() || !data.remote_hashes.empty(), copying,
                                 [data] { fetch_texts(data); }));
}

void add_copies(const TokenFilesConfig&, Copying&, std::vector<Copy>&) {}  // have no remote

/// Adds what a recipe names on the hub beside its data: the tokenizer, weights and tasks.
void add_hub_copies(const TrainConfig& config, const Copying& copying, std::vector<Copy>& copies) {
  if (const std::string& name = config.tokenizer; is_hub_name(name))
    copies.push_back(copy_of_hub(name, copying, [name] { return local_tokenizer(name); }));
  const std::string weights =
      std::visit([](const auto& family) { return family.weights; }, config.model.value);
  if (is_hub_name(weights))
    copies.push_back(copy_of_hub(weights, copying, [weights] { return open_hf_folder(weights).path; }));
  for (const IclTaskConfig& task : config.icl.tasks)
    if (is_hub_name(task.path))
      copies.push_back(copy_of_hub(task.path, copying, [name = task.path] { return local_path(name); }));
}

std::vector<Copy> copies_of_recipe(const Arguments& arguments, Copying& copying) {
  Arguments recipe = arguments;
  recipe.words.erase(recipe.words.begin());
  recipe.numbers.erase(recipe.numbers.begin());
  const TrainConfig config = resolve_recipe(recipe_request(recipe)).config;
  std::vector<Copy> copies;
  const auto add = [&](const DataConfig& data) {
    std::visit([&](const auto& one) { add_copies(one, copying, copies); }, data.value);
  };
  add(config.train_data);
  for (const DataStageConfig& stage : config.data_stages) add(stage.data);
  for (const auto& [name, data] : config.eval_data) add(data);
  add_hub_copies(config, copying, copies);
  if (copies.empty())
    fail(ExitCode::kUsage,
         "[data] the recipe has no data with a remote and names nothing on the hub; name it: tycho data "
         "preload URL DIR");
  return copies;
}

std::vector<Copy> copies_of_words(const Arguments& arguments, Copying& copying) {
  std::vector<Copy> copies;
  std::vector<std::string> splits = {""};
  if (!arguments.text("split").empty()) splits = arguments.list("split");
  for (const std::string& split : splits)
    copies.push_back(
        copy_of(cache_spec({.local_dir = arguments.words[2], .remote = arguments.words[1], .split = split}),
                copying));
  return copies;
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
  Copying copying;
  if (const int64_t threads = arguments.integer("threads", 0, 4096); threads > 0)
    copying.threads = static_cast<int>(threads);
  const std::vector<Copy> copies =
      is_recipe ? copies_of_recipe(arguments, copying) : copies_of_words(arguments, copying);
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"remote", "folder", "shards", "bytes", "fetched", "rate", "verified"}};
  std::set<std::pair<std::string, std::string>> done;
  for (const Copy& copy : copies) {
    if (!done.emplace(copy.remote, copy.to).second) continue;
    const PreloadReport report = copy.make();
    copying.line.clear();
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
