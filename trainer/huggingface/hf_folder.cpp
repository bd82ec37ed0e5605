// Opens Hugging Face folders. Files named by the index must be inside the folder.
#include "trainer/huggingface/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/vocab_files.h"
#include "trainer/hub/hub_files.h"
#include "trainer/huggingface/text_config.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

constexpr char kWeights[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr int64_t kMaxJsonBytes = int64_t{1} << 20;   // of config.json and index.json
constexpr int64_t kMaxKeptBytes = int64_t{64} << 20;  // of tokenizer.json and its like

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string read_bounded(const std::string& path, int64_t limit) {
  std::error_code error;
  const auto num_bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) fail(ExitCode::kUnusable, "[convert] cannot read {}: {}", path, error.message());
  if (num_bytes > limit)
    fail(ExitCode::kUnusable, "[convert] {} has {} bytes, at most {} are expected", path, num_bytes, limit);
  return read_file(path);
}

/// Returns a map from tensor name to file name.
std::map<std::string, std::string> read_index(const std::string& path) {
  const Json json = parse_json(read_bounded(path, kMaxJsonBytes), path);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object() || map->empty())
    fail(ExitCode::kUnusable, "[convert] {} has no weight_map: it names no tensors", path);
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>()) ||
        !file.get_ref<const std::string&>().ends_with(".safetensors"))
      fail(ExitCode::kUnusable,
           "[convert] {}: {} is listed in {}, which is not a .safetensors file of this folder", path, tensor,
           file.dump());
    files[tensor] = file;
  }
  return files;
}

void read_shard(const std::string& path, std::vector<HfTensor>& tensors) {
  if (!is_file(path)) fail(ExitCode::kUnusable, "[convert] {} is missing: download the folder again", path);
  const SafetensorsHeader header = read_safetensors_header(path);
  for (const SafetensorsEntry& entry : header.entries)
    tensors.push_back({entry.name, entry.dtype, entry.shape, path, header.data_start + entry.begin,
                       entry.end - entry.begin});
}

void check_against_index(const HfFolder& folder, const std::map<std::string, std::string>& index) {
  std::map<std::string, std::string> found;
  for (const HfTensor& tensor : folder.tensors) {
    const std::string file = fs::path(tensor.path).filename().string();
    const auto named = index.find(tensor.name);
    if (named == index.end() || named->second != file)
      fail(ExitCode::kUnusable, "[convert] {} contains {}, which {} does not list: download the folder again",
           tensor.path, tensor.name, kIndex);
    found[tensor.name] = file;
  }
  for (const auto& [name, file] : index)
    if (!found.contains(name))
      fail(ExitCode::kUnusable,
           "[convert] {} is not in {}/{}, although {} lists it there: download the folder again", name,
           folder.path, file, kIndex);
}

void read_weights(HfFolder& folder) {
  const std::string one = folder.path + "/" + kWeights, index_path = folder.path + "/" + kIndex;
  if (is_file(one)) {
    folder.num_shards = 1;
    return read_shard(one, folder.tensors);
  }
  if (!is_file(index_path)) {
    const bool pickled =
        is_file(folder.path + "/pytorch_model.bin") || is_file(folder.path + "/pytorch_model.bin.index.json");
    fail(ExitCode::kUnusable, "[convert] {} has neither {} nor {}{}", folder.path, kWeights, kIndex,
         pickled ? "; its pytorch_model.bin is a pickle, which can run code and is not read: load it with "
                   "transformers and save_pretrained(..., safe_serialization=True)"
                 : ": download the weights too");
  }
  const std::map<std::string, std::string> index = read_index(index_path);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : index) shards.insert(file);
  for (const std::string& file : shards) read_shard(folder.path + "/" + file, folder.tensors);
  folder.num_shards = static_cast<int64_t>(shards.size());
  check_against_index(folder, index);
}

bool is_small_file(const std::string& name) {
  return name == "config.json" || name == kIndex || std::ranges::count(kept_hf_files(), name) > 0;
}

/// Returns the folder on this machine; of a name of the hub, with all files but the weights.
std::string with_small_files(const std::string& folder) { return local_folder(folder, is_small_file); }

/// Returns the folder on this machine, of a name of the hub with the weights that are read: some repositories
/// have them in other forms, too.
std::string with_weights(const std::string& folder) {
  if (!is_hub_name(folder)) return folder;
  const std::string path = with_small_files(folder), index = path + "/" + kIndex;
  std::set<std::string> files = {kWeights};
  if (is_file(index)) {
    files.clear();
    for (const auto& [tensor, file] : read_index(index)) files.insert(file);
  }
  return local_folder(folder,
                      [&](const std::string& name) { return is_small_file(name) || files.contains(name); });
}

/// Returns true if the weights that are there have a head of their own.
bool has_head(const std::string& path) {
  const auto is_head = [](const std::string& name) { return name.ends_with("lm_head.weight"); };
  if (is_file(path + "/" + kWeights)) {
    const SafetensorsHeader header = read_safetensors_header(path + "/" + kWeights);
    return std::ranges::any_of(header.entries, [&](const auto& entry) { return is_head(entry.name); });
  }
  if (!is_file(path + "/" + kIndex)) return false;
  const std::map<std::string, std::string> index = read_index(path + "/" + kIndex);
  return std::ranges::any_of(index, [&](const auto& tensor) { return is_head(tensor.first); });
}

/// Adds the tokenizer.json made from vocab.json and merges.txt, or from tekken.json, if the folder has only
/// these. Adds nothing for other kinds.
void add_made_tokenizer(std::map<std::string, std::string>& files, const std::string& folder) {
  if (files.contains(kTokenizerFile) || files.contains(kSentencePieceFile)) return;
  try {
    if (std::optional<std::string> made = made_tokenizer_json(files, folder))
      files[kTokenizerFile] = std::move(*made);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUnusable) throw;
  }
}

}  // namespace

const std::vector<std::string>& kept_hf_files() {
  static const std::vector<std::string> names = {"tokenizer.json",
                                                 "tokenizer_config.json",
                                                 "special_tokens_map.json",
                                                 "generation_config.json",
                                                 "chat_template.jinja",
                                                 "tokenizer.model",
                                                 "added_tokens.json",
                                                 "vocab.json",
                                                 "merges.txt",
                                                 "tekken.json"};
  return names;
}

bool is_hf_folder(const std::string& path) {
  if (is_hub_name(path)) return true;
  std::error_code error;
  return is_file(path + "/config.json") && !is_file(path + "/COMMIT") &&
         !fs::is_directory(path + "/checkpoints", error);
}

Json read_hf_config_file(const std::string& folder) {
  const std::string path = with_small_files(folder);
  const std::string file = path + "/config.json";
  if (!is_file(file))
    fail(ExitCode::kUnusable, "[convert] {} is not a Hugging Face model folder: it has no config.json", path);
  const Json config = parse_json(read_bounded(file, kMaxJsonBytes), file);
  // Only models of text and images leave open whether they are tied: other folders are not opened twice.
  const bool wraps = config.is_object() && config.contains("text_config");
  return wraps ? text_config_of(config, has_head(wraps && is_hub_name(folder) ? with_weights(folder) : path))
               : config;
}

std::map<std::string, std::string> read_kept_hf_files(const std::string& folder) {
  const std::string path = with_small_files(folder);
  std::map<std::string, std::string> files;
  files[kKeptHfConfig] = read_bounded(path + "/config.json", kMaxJsonBytes);
  for (const std::string& name : kept_hf_files())
    if (is_file(path + "/" + name)) files[name] = read_bounded(path + "/" + name, kMaxKeptBytes);
  add_made_tokenizer(files, path);
  return files;
}

HfFolder open_hf_folder(const std::string& path) {
  HfFolder folder;
  folder.path = with_weights(path);
  while (folder.path.size() > 1 && folder.path.back() == '/') folder.path.pop_back();
  folder.config = read_hf_config_file(folder.path);
  folder.files = read_kept_hf_files(folder.path);
  read_weights(folder);
  return folder;
}

}  // namespace tycho
