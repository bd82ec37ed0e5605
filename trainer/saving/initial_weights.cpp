// Copies weights parameter by parameter, in the order of the layout.
#include "trainer/saving/initial_weights.h"

#include <ATen/ops/empty.h>

#include "trainer/base/error.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/huggingface/weight_source.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/saving/unit_tensors.h"

namespace tycho {
namespace {

void load_hf_weights(const std::string& path, const ModelConfig& model, const std::vector<OwnedRange>& ranges,
                     const std::function<void()>& between) {
  const ModelLayout layout = model_layout(model);
  const HfFolder folder = open_hf_folder(path);
  const HfMatch match = match_hf_tensors(layout, folder);
  // Units and their parameters lie in the order of the layout.
  std::vector<size_t> first_of_unit = {0};
  for (const UnitSpec& unit : layout.units)
    first_of_unit.push_back(first_of_unit.back() + unit.params.size());
  for (size_t u = 0; u < ranges.size(); ++u) {
    Tensor weights = ranges[u].weights();
    const Tensor host = at::empty(weights.sizes(), at::TensorOptions().dtype(at::kFloat)).zero_();
    for (const Extent& e : ranges[u].extents) {
      if (between) between();
      const HfParam& param = match.params[first_of_unit[u] + e.param];
      for_whole_runs(*e.spec, e.first, e.size(), [&](int64_t i, int64_t j, int64_t n) {
        read_hf_param(param, host.data_ptr<float>() + e.begin + i, j, n);
      });
    }
    weights.copy_(host);
    ranges[u].refresh_from_master();
  }
}

}  // namespace

const std::string& initial_weights_path(const ModelConfig& model) {
  return std::visit([](const auto& family) -> const std::string& { return family.weights; }, model.value);
}

void load_initial_weights(const std::string& path, const ModelConfig& model,
                          const std::vector<OwnedRange>& ranges, const std::function<void()>& between) {
  std::vector<OwnedRange> own = ranges;
  std::erase_if(own, [](const OwnedRange& range) { return range.layout.spec().adapts >= 0; });
  ModelConfig whole = model;
  whole.lora = {};
  if (is_hf_folder(path)) return load_hf_weights(path, whole, own, between);
  const CheckpointReader reader(find_checkpoint(path));
  require_model(reader);
  check_fit(reader, own, nullptr);
  load_tensors(reader, own, nullptr, between);
}

void load_base(const ModelConfig& model, const std::vector<OwnedRange>& ranges,
               const std::function<void()>& between) {
  if (!model.lora.is_used()) return;
  try {
    load_initial_weights(initial_weights_path(model), model, ranges, between);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUnusable && error.code() != ExitCode::kUsage) throw;
    fail(ExitCode::kUnusable,
         "[lora] the model that the adapters are for cannot be read from model.weights = \"{}\"; put it back "
         "there, or name its new place:\n{}",
         initial_weights_path(model), error.what());
  }
}

void load_trained(const CheckpointReader& checkpoint, const ModelConfig& model,
                  const std::vector<OwnedRange>& ranges) {
  const std::vector<OwnedRange> saved = saved_ranges(ranges);
  check_fit(checkpoint, saved, nullptr);
  load_base(model, ranges);
  load_tensors(checkpoint, saved, nullptr);
}

std::map<std::string, std::string> files_beside_weights(const std::string& path) {
  if (is_hf_folder(path)) return read_kept_hf_files(path);
  const CheckpointReader reader(find_checkpoint(path));
  std::map<std::string, std::string> files;
  std::vector<std::string> names = kept_hf_files();
  names.emplace_back(kKeptHfConfig);
  for (const std::string& name : names)
    if (reader.has_file(name)) files[name] = reader.read_text_file(name);
  return files;
}

}  // namespace tycho
