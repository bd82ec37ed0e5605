// Exports: streams a checkpoint's weights into shards, then writes what describes them.
#include "trainer/huggingface/hf_export.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/huggingface/export_folder.h"
#include "trainer/huggingface/float_types.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/huggingface/hf_tokenizer.h"
#include "trainer/huggingface/weight_source.h"
#include "trainer/layout/model_layout.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

/// The name of a dtype in recipes, in safetensors and in config.json.
struct DtypeNames {
  const char *ours, *safetensors, *torch;
};
constexpr std::array<DtypeNames, 3> kDtypes = {
    {{"fp32", "F32", "float32"}, {"bf16", "BF16", "bfloat16"}, {"fp16", "F16", "float16"}}};

const DtypeNames& choose_dtype(const std::string& wanted, const Json& kept_config) {
  const Json torch =
      kept_config.contains("dtype") ? kept_config["dtype"] : kept_config.value("torch_dtype", Json());
  for (const DtypeNames& names : kDtypes)
    if (wanted == names.ours || (wanted == "as-is" && torch == names.torch)) return names;
  if (wanted != "as-is")
    fail(ExitCode::kUsage, "[convert] --dtype expected fp32, bf16, fp16 or as-is, got \"{}\"", wanted);
  return kDtypes[0];
}

/// Provides the elements of a tensor. Reads its whole parameter when the first byte is requested.
class Source {
 public:
  Source(const ReadWeights& read, const ParamSpec& spec, const TensorRows& rows, std::string dtype)
      : read_(read), spec_(spec), first_(rows.first), count_(numel(rows.shape)), dtype_(std::move(dtype)) {}

  void fill(int64_t begin, void* to, int64_t n) {
    if (begin == 0) load();
    const int64_t width = safetensors_dtype_bytes(dtype_);
    if (!narrow_floats(dtype_, values_.data() + begin / width, to, n / width))
      fail(ExitCode::kUnusable, "[convert] {} has weights that {} cannot hold: export as bf16 or fp32",
           spec_.name, dtype_);
    if ((begin + n) / width == static_cast<int64_t>(values_.size())) std::vector<float>().swap(values_);
  }

 private:
  void load() {
    values_ = read_(spec_);
    values_.erase(values_.begin() + first_ + count_, values_.end());
    values_.erase(values_.begin(), values_.begin() + first_);
  }

  const ReadWeights& read_;
  const ParamSpec& spec_;
  int64_t first_, count_;
  std::string dtype_;
  std::vector<float> values_;
};

using Shard = std::vector<TensorBytes>;

/// A tensor to write: the checkpoint's parameter, and which of its rows.
struct Exported {
  const ParamSpec* spec;
  TensorRows rows;
};

/// Returns the tensors in the order of the layout.
std::vector<Exported> exported_tensors(const ModelConfig& model, const ModelLayout& layout,
                                       const Json& config) {
  const auto* mpt = std::get_if<MptConfig>(&model.value);
  const bool fused = mpt == nullptr || config.at("attn_config").value("fused_qkv", true);
  std::vector<Exported> tensors;
  for (const UnitSpec& unit : layout.units)
    for (const ParamSpec& spec : unit.params) {
      if (fused) {
        tensors.push_back({&spec, {spec.name, spec.shape, 0}});
        continue;
      }
      for (TensorRows& rows : unfused_rows(spec, mpt->heads * mpt->head_dim()))
        tensors.push_back({&spec, std::move(rows)});
    }
  return tensors;
}

/// Fills shards in order, and sorts each by name, like transformers.
std::vector<Shard> plan_shards(const ReadWeights& read, const std::vector<Exported>& tensors,
                               const std::string& dtype, int64_t shard_bytes) {
  std::vector<Shard> shards(1);
  int64_t filled = 0;
  for (const auto& [spec, rows] : tensors) {
    const int64_t num_bytes = safetensors_num_bytes(dtype, rows.shape, rows.name);
    if (filled > 0 && filled + num_bytes > shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    filled += num_bytes;
    const auto source = std::make_shared<Source>(read, *spec, rows, dtype);
    const auto fill = [source](int64_t begin, void* to, int64_t n) { source->fill(begin, to, n); };
    shards.back().push_back({rows.name, dtype, rows.shape, nullptr, num_bytes, fill});
  }
  for (Shard& shard : shards)
    std::sort(shard.begin(), shard.end(),
              [](const TensorBytes& a, const TensorBytes& b) { return a.name < b.name; });
  return shards;
}

std::string index_text(const std::vector<Shard>& shards, const ExportReport& report) {
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < shards.size(); ++i)
    for (const TensorBytes& tensor : shards[i]) files[tensor.name] = report.shards[i];
  const Json map = files;
  const Json metadata = {{"total_parameters", report.num_params}, {"total_size", report.num_bytes}};
  return Json{{"metadata", metadata}, {"weight_map", map}}.dump(2) + "\n";
}

/// Returns the config.json that the model came from. What it says of tokens and dtype may stand in the part
/// of the text, where the whole model also reads images.
Json kept_config(const CheckpointReader& checkpoint) {
  if (!checkpoint.has_file(kKeptHfConfig)) return Json::object();
  Json kept =
      parse_json(checkpoint.read_text_file(kKeptHfConfig), checkpoint.info().path + "/" + kKeptHfConfig);
  const Json text = kept.is_object() ? kept.value("text_config", Json()) : Json();
  if (!text.is_object()) return kept;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "dtype", "torch_dtype"})
    if (!kept.contains(key) && text.contains(key)) kept[key] = text[key];
  return kept;
}

std::string config_text(const HfConfigText& config, const Json& token_ids, const DtypeNames& dtype) {
  Json json = config.json;
  json.update(token_ids);
  json["torch_dtype"] = dtype.torch;
  return json.dump(2) + "\n";
}

ReadWeights weights_to_export(const CheckpointReader& checkpoint, const ModelConfig& model, bool merge) {
  if (!model.lora.is_used() && merge)
    fail(ExitCode::kUsage,
         "[convert] --merge expected adapters to merge, and {} holds a whole model: leave it out",
         checkpoint.info().path);
  std::vector<UnitSpec> units = model_layout(model).units;
  std::erase_if(units, [](const UnitSpec& unit) { return unit.base; });
  check_weights(checkpoint, units);
  return merge ? merged_weights(checkpoint, model) : weights_of(checkpoint);
}

}  // namespace

bool holds_exported_weights(const std::string& name) {
  for (const std::string stem : {"model", "pytorch_model"}) {
    const std::string ending = stem == "model" ? ".safetensors" : ".bin";
    if (name == stem + ending || name == stem + ending + ".index.json") return true;
    if (name.starts_with(stem + "-") && name.ends_with(ending) && name.find('/') == std::string::npos)
      return true;
  }
  return false;
}

ExportReport export_hf(FileOps& files, const CheckpointReader& checkpoint, const std::string& to,
                       const ExportOptions& options) {
  require_free_folder(to);
  const TrainConfig recipe = read_trained_config(checkpoint.info().manifest.at("recipe"), TrainedUse::kModel,
                                                 checkpoint.info().path);
  const ReadWeights read = weights_to_export(checkpoint, recipe.model, options.merge);
  ModelConfig model = recipe.model;
  model.lora = {};
  const ModelLayout layout = model_layout(model);
  const Json kept = kept_config(checkpoint);
  const DtypeNames& dtype = choose_dtype(options.dtype, kept);
  const HfConfigText config = write_hf_config(model, recipe.seq_len, kept);
  const HfTokenizerFiles tokenizer = tokenizer_files(checkpoint, kept);

  const std::vector<Shard> shards =
      plan_shards(read, exported_tensors(model, layout, config.json), dtype.safetensors, options.shard_bytes);
  ExportReport report{.architecture = config.json["architectures"][0],
                      .dtype = dtype.ours,
                      .num_params = layout.num_params(),
                      .warnings = config.warnings};
  ExportFolder folder(files, to);
  for (size_t i = 0; i < shards.size(); ++i) {
    report.shards.push_back(shards.size() == 1
                                ? "model.safetensors"
                                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size()));
    folder.shard(report.shards.back(), shards[i]);
    for (const TensorBytes& tensor : shards[i]) report.num_bytes += tensor.num_bytes;
  }
  if (shards.size() > 1) folder.text("model.safetensors.index.json", index_text(shards, report));
  for (const auto& [name, text] : tokenizer.files) {
    folder.text(name, text);
    report.files.push_back(name);
  }
  if (!options.card.empty()) {
    folder.text("README.md", options.card);
    report.files.push_back("README.md");
  }
  folder.text("config.json", config_text(config, tokenizer.token_ids, dtype));
  report.files.push_back("config.json");
  folder.finish();
  return report;
}

}  // namespace tycho
