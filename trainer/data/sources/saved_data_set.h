// Folders that the library `datasets` writes: save_to_disk, and its cache.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/splits/folder_splits.h"

namespace tycho {

/// Returns the files of a folder that save_to_disk wrote, as its records list them: the splits of a
/// DatasetDict, or one split "" of a Dataset. Empty for other folders. Throws Error (kUnusable) for damaged
/// records, and for a Dataset that is a selection of its rows (datasets before 2.0).
std::vector<FolderSplit> saved_splits(const std::string& folder);

/// Returns the paths of all files of `splits`, which are relative to `folder`.
std::vector<std::string> files_of(const std::string& folder, const std::vector<FolderSplit>& splits);

/// True for cache-*.arrow beside a dataset_info.json: results of map and filter, not data.
bool is_result_of_map(const std::string& path);

/// True for names of files that `datasets` writes about data: dataset_info.json, dataset_infos.json,
/// dataset_dict.json.
bool describes_data(const std::string& path);

}  // namespace tycho
