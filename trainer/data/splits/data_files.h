// Files of a configuration of a data set, and their splits, as the library `datasets` chooses them.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/splits/folder_splits.h"

namespace tycho {

/// Names of all files of a folder or a repository, and the two files that describe it.
struct DataListing {
  std::string place;               // name for messages, such as hf://datasets/OWNER/NAME
  std::vector<std::string> files;  // sorted, with slashes
  std::string readme, standalone;  // texts of README.md and .huggingface.yaml; "" where absent
  bool is_export = false;          // the branch refs/convert/parquet: CONFIGURATION/SPLIT/0000.parquet
};

/// Files of one configuration.
struct DataFiles {
  std::string configuration;  // "default" if the data set has none
  std::vector<FolderSplit> splits;
  bool names_splits = true;  // false: no name says anything, and all files are "train"
  bool is_declared = false;  // true if README.md declares the configuration
};

/// Chooses a configuration: the one of this name; for "", the only one, the one called "default", the one
/// that README.md marks as default, or the whole data set if README.md declares none. Files are those that
/// the patterns of README.md match, else folder_splits(), else all. Throws Error (kUnusable) if there is no
/// such configuration or none can be chosen (with those that exist), if a file is missing, and for files at
/// other addresses.
DataFiles choose_data_files(const DataListing& listing, const std::string& configuration);

/// True if README.md declares a configuration of this name, or if an exported data set has its folder.
bool has_configuration(const DataListing& listing, const std::string& name);

/// Removes from the files of a split those of other kinds than most of them, as `datasets` does: README-like
/// texts beside Parquet. Throws Error (kUnusable) if most are of a kind that is not read.
std::vector<std::string> files_of_main_kind(const std::vector<std::string>& files, const std::string& place);

/// Throws Error (kUnusable) if a repository's data comes out of a Python program, NAME.py, which is never
/// run. `id`: "OWNER/NAME" or "NAME".
void refuse_data_script(const DataListing& listing, const std::string& id);

}  // namespace tycho
