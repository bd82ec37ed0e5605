// The rules are those of datasets/load.py and data_files.py (5.2.0).
#include "trainer/data/splits/data_files.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/splits/data_kinds.h"
#include "trainer/data/splits/dataset_card.h"
#include "trainer/data/splits/path_pattern.h"

namespace tycho {
namespace {

constexpr std::array<std::string_view, 5> kReadKinds = {"parquet", "arrow", "json", "csv", "text"};

/// Returns the files below a folder, relative to it.
std::vector<std::string> files_below(const std::vector<std::string>& files, const std::string& folder) {
  if (folder.empty()) return files;
  std::vector<std::string> found;
  for (const std::string& file : files)
    if (file.starts_with(folder + "/")) found.push_back(file.substr(folder.size() + 1));
  return found;
}

/// Splits by the names in a folder; all files are "train" if no name says anything.
DataFiles split_by_names(const std::vector<std::string>& all, const std::string& folder) {
  const std::vector<std::string> files = files_below(all, folder);
  DataFiles found{.splits = folder_splits(files)};
  if (found.splits.empty()) {
    found.names_splits = false;
    if (auto every = matching_files(files, {"**"}); !every.empty()) found.splits = {{"train", every}};
  }
  for (FolderSplit& split : found.splits) {
    std::erase_if(split.files, [](const std::string& file) { return !is_data_by_name(file); });
    if (!folder.empty())
      for (std::string& file : split.files) file.insert(0, folder + "/");
  }
  return found;
}

/// Returns a path inside the data set without "./" and doubled slashes. Refuses other addresses.
std::string inside(const std::string& path, const std::string& place) {
  if (path.starts_with('/') || path.starts_with('~') || path.find("://") != path.npos)
    fail(
        ExitCode::kUnusable,
        "[data] {}: expected paths inside the data set in README.md, got {}: download that file, and name it "
        "as an input of its own",
        place, path);
  std::string clean;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, slash - begin);
    if (part == "..")
      fail(ExitCode::kUnusable, "[data] {}: expected paths inside the data set in README.md, got {}", place,
           path);
    if (!part.empty() && part != ".") clean += (clean.empty() ? "" : "/") + std::string(part);
    begin = slash + 1;
  }
  return clean;
}

DataFiles files_of(const DataListing& listing, const DeclaredConfiguration& declared) {
  const std::string folder = inside(declared.data_dir, listing.place);
  DataFiles found;
  if (!declared.has_files) found = split_by_names(listing.files, folder);
  for (const auto& [name, patterns] : declared.splits) {
    std::vector<std::string> placed;
    for (const std::string& text : patterns) {
      placed.push_back(inside(folder.empty() ? text : folder + "/" + text, listing.place));
      if (!PathPattern(placed.back()).has_magic() && matching_files(listing.files, {placed.back()}).empty())
        fail(ExitCode::kUnusable, "[data] {}: README.md names {} for the split {}, and there is no such file",
             listing.place, placed.back(), name);
    }
    std::vector<std::string> files = matching_files(listing.files, placed);
    std::erase_if(files, [](const std::string& file) { return !is_data_by_name(file); });
    found.splits.push_back({name, std::move(files)});
  }
  found.configuration = declared.name;
  found.is_declared = true;
  return found;
}

/// Configurations of the branch into which the hub converts data sets: one folder each.
std::vector<DeclaredConfiguration> exported(const DataListing& listing) {
  std::vector<DeclaredConfiguration> found;
  for (const std::string& file : listing.files) {
    const size_t first = file.find('/'), second = file.find('/', first + 1);
    if (first == file.npos || second == file.npos || !file.ends_with(".parquet")) continue;
    const std::string name = file.substr(0, first), split = file.substr(first + 1, second - first - 1);
    if (found.empty() || found.back().name != name) found.push_back({.name = name, .has_files = true});
    auto& splits = found.back().splits;
    if (splits.empty() || splits.back().first != split)
      splits.push_back({split, {name + "/" + split + "/*.parquet"}});
  }
  return found;
}

std::string names_of(const std::vector<DeclaredConfiguration>& all) {
  std::vector<std::string_view> names;
  for (const DeclaredConfiguration& one : all) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns the configuration that is read where none is named; nullptr if none can be chosen.
const DeclaredConfiguration* default_of(const std::vector<DeclaredConfiguration>& all,
                                        const DatasetCard& card, const std::string& place) {
  const DeclaredConfiguration* found = nullptr;
  for (const DeclaredConfiguration& one : all) {
    if (all.size() != 1 && one.name != "default" && !one.is_default) continue;
    if (found != nullptr)
      fail(ExitCode::kUnusable,
           "[data] {}: README.md has several default configurations, {} and {}: choose one with --config",
           place, found->name, one.name);
    found = &one;
  }
  if (found == nullptr && card.described.size() == 1)
    for (const DeclaredConfiguration& one : all)
      if (one.name == card.described[0]) found = &one;
  return found;
}

DatasetCard card_of(const DataListing& listing) {
  return read_dataset_card(listing.readme, listing.standalone, listing.place + "/");
}

/// Returns the configurations that README.md declares, else those of an exported data set.
std::vector<DeclaredConfiguration> configurations_of(const DatasetCard& card, const DataListing& listing) {
  return card.configurations.empty() && listing.is_export ? exported(listing) : card.configurations;
}

void check_not_empty(const DataFiles& found, const DataListing& listing) {
  if (std::any_of(found.splits.begin(), found.splits.end(),
                  [](const auto& split) { return !split.files.empty(); }))
    return;
  fail(ExitCode::kUnusable,
       "[data] {} expected files of data, got none{}: nothing there has an ending such as .parquet, .jsonl, "
       ".csv, .arrow or .txt{}",
       listing.place, found.configuration == "default" ? "" : " for the configuration " + found.configuration,
       listing.files.empty() ? "" : fmt::format(" (it has {} files)", listing.files.size()));
}

}  // namespace

bool has_configuration(const DataListing& listing, const std::string& name) {
  const std::vector<DeclaredConfiguration> all = configurations_of(card_of(listing), listing);
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
}

DataFiles choose_data_files(const DataListing& listing, const std::string& configuration) {
  const DatasetCard card = card_of(listing);
  const std::vector<DeclaredConfiguration> all = configurations_of(card, listing);
  if (all.empty()) {
    if (!configuration.empty() && configuration != "default")
      fail(ExitCode::kUnusable,
           "[data] {} expected the configuration {}, got a data set without configurations: leave --config "
           "out, or name a folder of it",
           listing.place, configuration);
    DataFiles found = split_by_names(listing.files, "");
    found.configuration = "default";
    check_not_empty(found, listing);
    return found;
  }
  const DeclaredConfiguration* chosen = nullptr;
  if (configuration.empty()) {
    chosen = default_of(all, card, listing.place);
    if (chosen == nullptr)
      fail(ExitCode::kUnusable, "[data] {} has several configurations: choose one with --config{}: {}",
           listing.place,
           listing.place.starts_with("hf://") ? fmt::format(", or as {}/{}", listing.place, all.front().name)
                                              : "",
           names_of(all));
  }
  for (const DeclaredConfiguration& one : all)
    if (chosen == nullptr && one.name == configuration) chosen = &one;
  if (chosen == nullptr)
    fail(ExitCode::kUnusable, "[data] {} has no configuration {}; it has: {}", listing.place, configuration,
         names_of(all));
  DataFiles found = files_of(listing, *chosen);
  check_not_empty(found, listing);
  return found;
}

std::vector<std::string> files_of_main_kind(const std::vector<std::string>& files, const std::string& place) {
  const std::string kind = main_kind(files);
  if (std::find(kReadKinds.begin(), kReadKinds.end(), kind) == kReadKinds.end())
    fail(ExitCode::kUnusable, "[data] {} expected Parquet, Arrow, JSONL, CSV or text, got {}", place,
         kind.empty() ? "no file that is data by its name"
                      : "files of the kind that `datasets` calls " + kind + ", which is not read");
  std::vector<std::string> found;
  for (const std::string& file : files)
    if (is_of_kind(file, kind)) found.push_back(file);
  return found;
}

void refuse_data_script(const DataListing& listing, const std::string& id) {
  const std::string script = id.substr(id.rfind('/') + 1) + ".py";
  if (std::find(listing.files.begin(), listing.files.end(), script) == listing.files.end()) return;
  fail(ExitCode::kUnusable,
       "[data] {} is made by a Python program, {}, which is not run (`datasets` does not run it either). Use "
       "the Parquet files that the hub has made of it: hf://datasets/{}@refs/convert/parquet",
       listing.place, script, id);
}

}  // namespace tycho
