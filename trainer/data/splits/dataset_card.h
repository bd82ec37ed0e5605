// Configurations of a data set, as the YAML at the beginning of its README.md declares them.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// One entry of `configs`.
struct DeclaredConfiguration {
  std::string name;
  bool is_default = false;  // `default: true`
  bool has_files = false;   // false: without data_files, the names in `data_dir` decide
  std::string data_dir;     // "" for the whole data set
  std::vector<std::pair<std::string, std::vector<std::string>>> splits;  // names, and patterns of files
};

/// Declarations of README.md.
struct DatasetCard {
  std::vector<DeclaredConfiguration> configurations;
  std::vector<std::string> described;  // names of dataset_info
};

/// Reads the YAML between the two lines "---" of README.md; an empty card without it. `standalone`: text of
/// .huggingface.yaml, whose keys take precedence. `place`: name for messages. Throws Error (kUnusable) for
/// damaged YAML, and for entries of another shape.
DatasetCard read_dataset_card(const std::string& readme, const std::string& standalone,
                              const std::string& place);

}  // namespace tycho
