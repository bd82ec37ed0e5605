// From a Hugging Face folder to a Tycho checkpoint: weights only. Torch-free.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/families/config.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/hf_names.h"
#include "trainer/layout/model_layout.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// A folder that has been opened, read and matched: everything but the bytes of the weights.
struct HfSource {
  HfFolder folder;
  HfConfig config;
  ModelLayout layout;
  HfMatch match;  // points into folder and layout
};
/// Opens a folder. The result is on the heap because the match points into it. Throws Error (kUnusable) like
/// hf_folder.h, hf_config.h and hf_names.h.
std::unique_ptr<HfSource> open_hf_source(const std::string& path,
                                         const std::vector<std::string>& ignore = {});

/// Reads elements [begin, begin + n) of a parameter as fp32. Throws Error (kUnusable) on a short file.
void read_hf_param(const HfParam& param, float* to, int64_t begin, int64_t n);

struct ImportReport {
  CheckpointInfo checkpoint;
  std::string family;
  int64_t num_params = 0, num_shards = 0;
  std::vector<std::string> dtypes, ignored, notes, kept_files;
  bool has_tokenizer = false;  // kept_files has one that Tycho can use
};

/// Imports a folder into a new run folder `to`, as the checkpoint of step 0. Everything is checked before a
/// byte is written; memory stays at a few blocks. Throws Error: kUnusable for the folder, kUsage when `to`
/// exists, kStorage. `ignore`: see read_hf_config.
ImportReport import_hf(FileOps& files, const std::string& from, const std::string& to,
                       const std::vector<std::string>& ignore = {});

/// Returns the recipe of a model that was trained elsewhere, as a run in `to`: defaults, and sequences of its
/// length. Names no data.
TrainConfig imported_recipe(const ModelConfig& model, const std::string& to);

/// Throws Error (kUsage) unless `path` is free or an empty folder.
void require_free_folder(const std::string& path);

}  // namespace tycho
