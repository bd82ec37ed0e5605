// Imports: opens and checks a folder, then streams its weights into a checkpoint.
#include "trainer/huggingface/hf_import.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "trainer/base/error.h"
#include "trainer/base/folder_draft.h"
#include "trainer/data/tokenizer/tekken.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/vocab_files.h"
#include "trainer/huggingface/hf_tokenizer.h"
#include "trainer/recipe/config_io.h"
#include "trainer/state/train_state.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

constexpr int64_t kFirstEpoch = 1;
constexpr int64_t kDefaultSeqLen = 2048;

/// Returns the recipe for the checkpoint: its model, and nothing to train on yet.
std::vector<TensorBytes> tensors_of(const HfMatch& match) {
  std::vector<TensorBytes> tensors;
  for (const HfParam& param : match.params) {
    const auto fill = [&param](int64_t begin, void* to, int64_t n) {
      read_hf_param(param, static_cast<float*>(to), begin / 4, n / 4);
    };
    tensors.push_back({param.spec->name, "F32", param.spec->shape, nullptr, param.num_bytes(), fill});
  }
  return tensors;
}

/// Notes why vocab.json and merges.txt, or tekken.json, have made no tokenizer.json.
void note_unread_tokenizer(const HfFolder& folder, std::vector<std::string>& notes) {
  try {
    made_tokenizer_json(folder.files, folder.path);
  } catch (const Error& error) {
    const char* kept = folder.files.contains(kVocabFile) ? kVocabFile : kTekkenFile;
    notes.push_back(fmt::format("{} is kept, but Tycho cannot use it: {}", kept, error.what()));
  }
}

/// Returns true when Tycho can use the folder's tokenizer. One of another kind, or with more tokens than the
/// model, is kept with a note. Throws Error (kUnusable) for a damaged one.
bool check_kept_tokenizer(const HfFolder& folder, int64_t vocab_size, std::vector<std::string>& notes) {
  auto found = folder.files.find(kTokenizerFile);
  if (found == folder.files.end()) found = folder.files.find(kSentencePieceFile);
  if (found == folder.files.end()) {
    note_unread_tokenizer(folder, notes);
    return false;
  }
  const std::string place = folder.path + "/" + found->first;
  if (found->first == kTokenizerFile && !SortedJson::accept(found->second))
    fail(ExitCode::kUnusable, "[convert] {} is not valid JSON: download the folder again", place);
  try {
    const auto tokenizer = tokenizer_from_text(found->second, place, files_beside_tokenizer(folder.files));
    if (tokenizer->size() > vocab_size)
      notes.push_back(too_many_tokens(found->first, tokenizer->size(), vocab_size));
    return true;
  } catch (const Error& error) {
    notes.push_back(fmt::format("{} is kept, but Tycho cannot use it: {}", found->first, error.what()));
    return false;
  }
}

}  // namespace

TrainConfig imported_recipe(const ModelConfig& model, const std::string& to) {
  TrainConfig config;
  config.model = model;
  config.run_name = fs::path(to).filename().string();
  config.run_dir = to;
  config.seq_len = std::visit(
      [](const auto& family) {
        return std::min<int64_t>(kDefaultSeqLen, std::optional(family.max_seq_len).value_or(kDefaultSeqLen));
      },
      model.value);
  return config;
}

void require_free_folder(const std::string& path) {
  if (is_free_for_draft(path)) return;
  fail(ExitCode::kUsage, "[convert] {} already exists and is not overwritten: choose a new folder", path);
}

std::unique_ptr<HfSource> open_hf_source(const std::string& path, const std::vector<std::string>& ignore) {
  auto source = std::make_unique<HfSource>();
  source->folder = open_hf_folder(path);
  source->config = read_hf_config(source->folder.config, source->folder.path + "/config.json",
                                  HfStart::kItsWeights, ignore);
  source->layout = model_layout(source->config.model);
  source->match = match_hf_tensors(source->layout, source->folder);
  return source;
}

void read_hf_param(const HfParam& param, float* to, int64_t begin, int64_t n) {
  for (const HfTensor* part : param.parts) {
    const int64_t size = numel(part->shape), here = std::clamp<int64_t>(size - begin, 0, n);
    if (here > 0) read_hf_tensor(*part, to, begin, here);
    to += here, n -= here;
    begin = std::max<int64_t>(begin - size, 0);
  }
}

ImportReport import_hf(FileOps& files, const std::string& from, const std::string& to,
                       const std::vector<std::string>& ignore) {
  require_free_folder(to);
  const std::unique_ptr<HfSource> source = open_hf_source(from, ignore);
  ImportReport report;
  report.notes = source->config.notes;
  report.has_tokenizer = check_kept_tokenizer(source->folder, source->layout.vocab_size, report.notes);
  const Json recipe = config_to_json(imported_recipe(source->config.model, to));
  read_trained_config(recipe, TrainedUse::kModel, from);  // there is no data yet
  CheckpointMeta meta{.train_state = TrainState{}.to_json(),
                      .recipe = recipe,
                      .recipe_hash = config_hash(recipe),
                      .files = source->folder.files};
  FolderDraft draft(files, to);
  CheckpointStore store(files, draft.dir() + "/checkpoints", /*keep=*/0, kFirstEpoch);
  report.checkpoint = store.save(meta, tensors_of(source->match));
  draft.publish();
  report.checkpoint.path.replace(0, draft.dir().size(), to);
  report.family = source->config.model.kind();
  report.num_params = source->layout.num_params();
  report.num_shards = source->folder.num_shards;
  std::set<std::string> dtypes;
  for (const HfParam& param : source->match.params)
    for (const HfTensor* part : param.parts) dtypes.insert(part->dtype);
  report.dtypes.assign(dtypes.begin(), dtypes.end());
  report.ignored = source->match.ignored;
  for (const auto& [name, text] : source->folder.files) report.kept_files.push_back(name);
  return report;
}

}  // namespace tycho
