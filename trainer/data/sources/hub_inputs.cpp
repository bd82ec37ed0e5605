// A file is verified before it is opened, so nothing is ever made of bytes that are not the repository's.
#include "trainer/data/sources/hub_inputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/sources/byte_source.h"
#include "trainer/data/sources/lent_file.h"
#include "trainer/data/sources/unread_kinds.h"
#include "trainer/data/splits/data_files.h"
#include "trainer/data/splits/path_pattern.h"
#include "trainer/hub/hub_cache.h"
#include "trainer/hub/hub_files.h"
#include "trainer/hub/hub_settings.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = 1 << 20;
constexpr int kDownloads = 8;

/// Fetches files of a snapshot in the order in which they are read.
class HubLender final : public FileLender {
 public:
  HubLender(HubSnapshot snapshot, std::vector<std::string> paths, const InputRules& rules)
      : snapshot_(std::move(snapshot)),
        paths_(std::move(paths)),
        folder_(rules.passing_folder),
        num_ahead_(rules.downloads > 0 ? static_cast<size_t>(rules.downloads) : kDownloads),
        fetched_(paths_.size()) {
    for (size_t i = 0; i < paths_.size(); ++i) places_[snapshot_.repository.below(paths_[i]).text()] = i;
  }
  ~HubLender() override {
    stop_.request_stop();
    for (auto& file : fetched_)
      if (file.valid()) file.wait();
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }
  HubLender(const HubLender&) = delete;

  std::string lend(const std::string& name) override {
    const size_t at = places_.at(name);
    std::shared_future<std::string> wanted;
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = at; i < std::min(at + num_ahead_, paths_.size()); ++i)
        if (!fetched_[i].valid())
          fetched_[i] = std::async(std::launch::async, [this, i] { return fetch(i); }).share();
      wanted = fetched_[at];
    }
    return wanted.get();
  }

  void take_back(const std::string& name) override {
    const size_t at = places_.at(name);
    const std::lock_guard lock(mutex_);
    std::error_code error;
    if (!folder_.empty()) fs::remove(passing_path(at), error);  // absent where the cache had the file
    fetched_[at] = {};
  }

 private:
  /// Returns where a file that is not kept lies while it is read. Readers choose by the ending.
  std::string passing_path(size_t at) const {
    return fmt::format("{}/{}-{}", folder_, at, fs::path(paths_[at]).filename().string());
  }

  std::string fetch(size_t at) {
    if (folder_.empty()) return hub_file(snapshot_, paths_[at], stop_.get_token());
    const HubCache cache(hub_settings(), snapshot_.repository);
    const HubFile* file = snapshot_.find(paths_[at]);
    if (auto found = cache.find(snapshot_.commit(), paths_[at], file->num_bytes)) return *found;
    const auto stream = open_hub_stream(snapshot_, paths_[at], stop_.get_token());
    make_dirs(real_files(), folder_);
    const std::string path = passing_path(at);
    write(*stream, path);
    return path;
  }

  static void write(HubStream& stream, const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const auto check = [&](bool is_good) {
      if (!is_good) fail(ExitCode::kStorage, "[data] cannot write {}: {}", path, std::strerror(errno));
    };
    check(descriptor >= 0);
    try {
      std::string block(kCopyBytes, '\0');
      while (const size_t count = stream.read(block.data(), block.size()))
        for (size_t done = 0; done < count;) {
          const ssize_t written = ::write(descriptor, block.data() + done, count - done);
          check(written >= 0 || errno == EINTR);
          done += static_cast<size_t>(std::max<ssize_t>(written, 0));
        }
    } catch (...) {
      ::close(descriptor);
      ::unlink(path.c_str());
      throw;
    }
    check(::close(descriptor) == 0);
  }

  const HubSnapshot snapshot_;
  const std::vector<std::string> paths_;
  std::map<std::string, size_t> places_;
  const std::string folder_;  // "": files go to the cache
  const size_t num_ahead_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::vector<std::shared_future<std::string>> fetched_;
};

/// Returns the text of a small file of the repository; "" if there is none.
std::string text_of(const HubSnapshot& snapshot, const std::string& path) {
  return snapshot.find(path) == nullptr ? "" : read_file(hub_file(snapshot, path));
}

std::string split_names(const std::vector<FolderSplit>& splits) {
  std::vector<std::string> names;
  for (const FolderSplit& split : splits)
    if (!split.files.empty()) names.push_back(split.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns the split that the rules name; "train_small" is made of "train".
const FolderSplit* wanted_split(const std::vector<FolderSplit>& splits, const InputRules& rules) {
  const FolderSplit* wanted = find_split(splits, rules.split);
  if (wanted == nullptr && rules.takes_unsplit)
    wanted = find_split(splits, rules.split.substr(0, rules.split.find('_')));
  return wanted;
}

std::vector<std::string> files_of_split(const DataFiles& chosen, const InputRules& rules,
                                        const std::string& place) {
  std::vector<std::string> files;
  if (rules.split.empty())
    for (const FolderSplit& split : chosen.splits)
      files.insert(files.end(), split.files.begin(), split.files.end());
  else if (const FolderSplit* split = wanted_split(chosen.splits, rules))
    files = split->files;
  if (files.empty())
    fail(ExitCode::kUnusable, "[data] {} expected the split {}, got {}: choose one with split", place,
         rules.split, split_names(chosen.splits));
  return files;
}

/// Returns the paths of the repository that are read.
std::vector<std::string> choose_paths(const HubSnapshot& snapshot, const HubName& name,
                                      const InputRules& rules, std::string& about) {
  const std::string place = name.text();
  if (snapshot.find(name.path) != nullptr) return {name.path};
  DataListing listing{.place = place, .is_export = name.revision == "refs/convert/parquet"};
  for (const HubFile* file : snapshot.below("")) listing.files.push_back(file->path);
  if (name.path.find_first_of("*?[") != std::string::npos) {
    const std::vector<std::string> found = matching_files(listing.files, {name.path});
    if (found.empty())
      fail(ExitCode::kUnusable, "[data] no file of {} matches {}", name.repository(), name.path);
    return found;
  }
  const bool may_be_configuration = name.path.find('/') == std::string::npos;
  if (may_be_configuration) {
    HubName whole = name;
    whole.path.clear();
    listing.place = whole.text();
    listing.readme = text_of(snapshot, "README.md");
    listing.standalone = text_of(snapshot, ".huggingface.yaml");
  }
  const bool is_configuration =
      may_be_configuration && rules.configuration.empty() && has_configuration(listing, name.path);
  const std::string folder = name.path.empty() || is_configuration ? "" : name.path + "/";
  if (folder.empty()) {
    refuse_data_script(listing, name.id);
  } else {
    std::erase_if(listing.files, [&](const std::string& file) { return !file.starts_with(folder); });
    for (std::string& file : listing.files) file.erase(0, folder.size());
    listing = {.place = place, .files = std::move(listing.files)};
    if (listing.files.empty())
      fail(ExitCode::kUnusable,
           "[data] {} does not exist: the repository has no such file, folder or configuration at {}", place,
           snapshot.commit());
  }
  const DataFiles chosen = choose_data_files(listing, is_configuration ? name.path : rules.configuration);
  std::vector<std::string> files = files_of_main_kind(files_of_split(chosen, rules, place), place);
  for (std::string& file : files) file.insert(0, folder);
  about = fmt::format(
      "{}{}", rules.split.empty() ? "" : "split " + wanted_split(chosen.splits, rules)->name + ", ",
      chosen.configuration == "default" ? "" : "configuration " + chosen.configuration + ", ");
  return files;
}

TextFormat format_of(const std::string& path, const InputRules& rules, const std::string& place) {
  if (rules.format) return *rules.format;
  const std::string name = uncompressed_name(path);
  const auto ends = [&](std::initializer_list<const char*> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](const char* one) { return name.ends_with(one); });
  };
  if (ends({".parquet", ".geoparquet", ".gpq"})) return TextFormat::kParquet;
  if (ends({".jsonl", ".json", ".ndjson"})) return TextFormat::kJsonl;
  if (ends({".arrow"})) return TextFormat::kArrow;
  if (ends({".csv"})) return TextFormat::kCsv;
  if (ends({".tsv"})) return TextFormat::kTsv;
  if (ends({".txt", ".text"}) && !rules.rows_only) return TextFormat::kText;
  fail(ExitCode::kUnusable,
       "[data] {} expected {}Parquet, Arrow, JSONL or CSV (also .gz, .zst) by its ending, got {}: unpack or "
       "convert it first, or name its kind with --format",
       place, rules.rows_only ? "" : "text, ", fs::path(path).filename().string());
}

}  // namespace

InputFiles find_hub_files(const std::string& text, const InputRules& rules) {
  const HubName name = parse_hub_name(text);
  HubName repository = name;
  repository.path.clear();
  HubSnapshot snapshot = open_hub(repository);
  std::string about;
  const std::vector<std::string> paths = choose_paths(snapshot, name, rules, about);
  InputFiles found;
  int64_t bytes = 0;
  const auto lender = std::make_shared<HubLender>(snapshot, paths, rules);
  for (const std::string& path : paths) {
    const HubFile* file = snapshot.find(path);
    const std::string place = snapshot.repository.below(path).text();
    found.files.push_back({.path = place,
                           .format = format_of(path, rules, place),
                           .bytes = file->num_bytes,
                           .lender = lender,
                           .hash = file->hash()});
    bytes += file->num_bytes;
  }
  found.notes.push_back(fmt::format("{}: {}{} files, {}", snapshot.repository.text(), about, paths.size(),
                                    human_bytes(static_cast<double>(bytes))));
  return found;
}

}  // namespace tycho
