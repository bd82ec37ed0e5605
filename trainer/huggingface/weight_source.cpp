// Reads whole parameters, and adds the products of adapters to them.
#include "trainer/huggingface/weight_source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/base/text/line_list.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/huggingface/float_types.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/hf_import.h"

namespace tycho {
namespace {

std::vector<float> read_tensor(const CheckpointReader& checkpoint, const std::string& name) {
  const TensorBytes& tensor = checkpoint.describe(name);
  std::vector<float> values(static_cast<size_t>(numel(tensor.shape)));
  if (tensor.dtype == "F32") {
    checkpoint.read(name, values.data(), tensor.num_bytes);
    return values;
  }
  std::vector<char> bytes(static_cast<size_t>(tensor.num_bytes));
  checkpoint.read(name, bytes.data(), tensor.num_bytes);
  widen_floats(tensor.dtype, bytes.data(), values.data(), std::ssize(values));
  return values;
}

/// Returns a reader for the parameters of a Hugging Face folder or a checkpoint.
ReadWeights base_weights(const std::string& path, ModelConfig model) {
  model.lora = {};
  if (!is_hf_folder(path)) {
    const auto reader = std::make_shared<CheckpointReader>(find_checkpoint(path));
    require_model(*reader);
    check_weights(*reader, model_layout(model).units);
    return [reader](const ParamSpec& spec) { return read_tensor(*reader, spec.name); };
  }
  struct Source {
    HfFolder folder;
    ModelLayout layout;
    HfMatch match;
  };
  auto source = std::make_shared<Source>(Source{open_hf_folder(path), model_layout(model), {}});
  source->match = match_hf_tensors(source->layout, source->folder);
  return [source](const ParamSpec& spec) {
    const auto param = std::find_if(source->match.params.begin(), source->match.params.end(),
                                    [&](const HfParam& one) { return one.spec->name == spec.name; });
    std::vector<float> values(static_cast<size_t>(numel(spec.shape)));
    read_hf_param(*param, values.data(), 0, std::ssize(values));
    return values;
  };
}

/// Computes w += scale B A: [rows, columns], or the transpose. Sums are fp64.
void add_product(const std::vector<float>& a, const std::vector<float>& b, size_t rank, double scale,
                 bool in_out, std::vector<float>& w) {
  const size_t rows = b.size() / rank, columns = a.size() / rank;
  std::vector<double> row(columns);
  for (size_t m = 0; m < rows; ++m) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t r = 0; r < rank; ++r) {
      const double factor = scale * static_cast<double>(b[m * rank + r]);
      const float* from = a.data() + r * columns;
      for (size_t k = 0; k < columns; ++k) row[k] += factor * static_cast<double>(from[k]);
    }
    for (size_t k = 0; k < columns; ++k) {
      float& element = w[in_out ? k * rows + m : m * columns + k];
      element = static_cast<float>(static_cast<double>(element) + row[k]);
    }
  }
}

}  // namespace

ReadWeights weights_of(const CheckpointReader& checkpoint) {
  return [&checkpoint](const ParamSpec& spec) { return read_tensor(checkpoint, spec.name); };
}

ReadWeights merged_weights(const CheckpointReader& adapters, const ModelConfig& model) {
  const std::string path = std::visit([](const auto& family) { return family.weights; }, model.value);
  const bool in_out = decoder_spec(model).in_out;
  return [&adapters, lora = model.lora, in_out, base = base_weights(path, model)](const ParamSpec& spec) {
    std::vector<float> weights = base(spec);
    constexpr std::string_view kWeight = ".weight";
    if (!spec.name.ends_with(kWeight)) return weights;
    const std::string layer = spec.name.substr(0, spec.name.size() - kWeight.size());
    const std::string a = layer + ".lora_A.weight", b = layer + ".lora_B.weight";
    if (adapters.has(a))
      add_product(read_tensor(adapters, a), read_tensor(adapters, b), static_cast<size_t>(lora.rank),
                  lora.scale(), in_out, weights);
    return weights;
  };
}

void check_weights(const CheckpointReader& checkpoint, const std::vector<UnitSpec>& units) {
  std::vector<std::string> problems;
  for (const UnitSpec& unit : units)
    for (const ParamSpec& spec : unit.params) {
      if (!checkpoint.has(spec.name)) {
        problems.push_back(fmt::format("{} is missing", spec.name));
        continue;
      }
      const TensorBytes& found = checkpoint.describe(spec.name);
      if (found.shape != spec.shape || !is_float_dtype(found.dtype))
        problems.push_back(fmt::format("{}: expected [{}], got {} [{}]", found.name,
                                       fmt::join(spec.shape, ", "), found.dtype,
                                       fmt::join(found.shape, ", ")));
    }
  if (!problems.empty())
    fail(ExitCode::kUnusable, "[convert] {} does not contain the model of its own recipe:{}",
         checkpoint.info().path, line_list(problems));
}

void require_model(const CheckpointReader& checkpoint) {
  const Json recipe = checkpoint.info().manifest.value("recipe", Json::object());
  if (recipe.value("lora", Json::object()).value("rank", 0) == 0) return;
  fail(ExitCode::kUnusable,
       "[weights] {} holds adapters only: merge them into their model with `tycho convert RUN FOLDER "
       "--merge`, and "
       "name that folder",
       checkpoint.info().path);
}

}  // namespace tycho
