// A Hugging Face folder on disk: config.json, safetensors in one file or many, and small files beside them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// A tensor and its position on disk.
struct HfTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::string path;  // of its file
  int64_t offset = 0, num_bytes = 0;
};

struct HfFolder {
  std::string path;
  Json config;
  std::vector<HfTensor> tensors;  // file by file, in the order of their bytes
  int64_t num_shards = 0;
  std::map<std::string, std::string>
      files;  // tokenizer.json and other small files, by the names that a checkpoint keeps
};

/// Name under which a checkpoint keeps the config.json that its model came from.
inline constexpr char kKeptHfConfig[] = "hf_config.json";
/// Names of the small files that are kept, as Hugging Face writes them.
const std::vector<std::string>& kept_hf_files();

/// Returns true when a path is such a folder, and not a run or checkpoint.
bool is_hf_folder(const std::string& path);
/// Returns the config.json of a folder, or that of its text model (text_config.h). Throws Error (kUnusable).
Json read_hf_config_file(const std::string& path);
/// Returns the small files of a folder, including config.json under kKeptHfConfig. Throws Error (kUnusable).
std::map<std::string, std::string> read_kept_hf_files(const std::string& path);
/// Reads everything but the weights' bytes. Throws Error (kUnusable) that names what is missing, damaged or
/// leads out of the folder.
HfFolder open_hf_folder(const std::string& path);

}  // namespace tycho
