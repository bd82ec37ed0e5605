// state.json lists the files of a Dataset; dataset_dict.json the folders of a DatasetDict.
#include "trainer/data/sources/saved_data_set.h"

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Returns the strings of a list; `of_item` finds the string of an item. Fails for names that leave the
/// folder.
template <class OfItem>
std::vector<std::string> names_in(const Json& json, const char* key, const std::string& place,
                                  OfItem of_item) {
  std::vector<std::string> names;
  const auto list = json.find(key);
  const bool is_list = list != json.end() && list->is_array();
  if (!is_list)
    fail(ExitCode::kUnusable, "[data] {} has no list \"{}\"; save the data set again", place, key);
  for (const Json& item : *list) {
    const Json name = of_item(item);
    if (!name.is_string() || name.template get<std::string>().find('/') != std::string::npos ||
        name.template get<std::string>().starts_with('.'))
      fail(ExitCode::kUnusable,
           "[data] {} expected names of files in its folder, got {}; save the data set again", place,
           name.dump());
    names.push_back(name.template get<std::string>());
  }
  return names;
}

Json read_record(const std::string& path) {
  return parse_json(read_file_up_to(path, kMostTypedBytes), "data] [" + path);
}

/// Returns the files of a Dataset, with `prefix` before their names.
std::vector<std::string> files_of_state(const std::string& folder, const std::string& prefix) {
  const std::string path = folder + "/state.json";
  const Json state = read_record(path);
  if (!state.is_object())
    fail(ExitCode::kUnusable, "[data] {} is not an object; save the data set again", path);
  for (const char* key : {"_indices_data_files", "_indices_files"})
    if (const auto indices = state.find(key); indices != state.end() && !indices->empty())
      fail(ExitCode::kUnusable,
           "[data] {}: the data set is a selection of the rows in its files; load it with datasets and save "
           "it "
           "again, which writes these rows alone",
           path);
  std::vector<std::string> files = names_in(state, "_data_files", path, [](const Json& item) {
    return item.is_object() && item.contains("filename") ? item.at("filename") : Json();
  });
  for (std::string& file : files) file = prefix + file;
  return files;
}

bool exists_in(const std::string& folder, const char* name) {
  std::error_code error;
  return fs::is_regular_file(folder + "/" + name, error);
}

}  // namespace

std::vector<FolderSplit> saved_splits(const std::string& folder) {
  std::vector<FolderSplit> splits;
  if (exists_in(folder, "dataset_dict.json")) {
    const std::string path = folder + "/dataset_dict.json";
    for (const std::string& name :
         names_in(read_record(path), "splits", path, [](const Json& item) { return item; }))
      splits.push_back({name, files_of_state(folder + "/" + name, name + "/")});
  } else if (exists_in(folder, "state.json") && exists_in(folder, "dataset_info.json")) {
    splits.push_back({"", files_of_state(folder, "")});
  }
  return splits;
}

std::vector<std::string> files_of(const std::string& folder, const std::vector<FolderSplit>& splits) {
  std::vector<std::string> paths;
  for (const FolderSplit& split : splits)
    for (const std::string& file : split.files) paths.push_back((fs::path(folder) / file).string());
  return paths;
}

bool is_result_of_map(const std::string& path) {
  const fs::path file(path);
  return file.filename().string().starts_with("cache-") && file.extension() == ".arrow" &&
         exists_in(file.parent_path().string(), "dataset_info.json");
}

bool describes_data(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name == "dataset_info.json" || name == "dataset_infos.json" || name == "dataset_dict.json";
}

}  // namespace tycho
