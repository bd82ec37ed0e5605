// A tiny model of another system with what that system computed from a batch, and our own computation of it.
#pragma once
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>

#include "tests/trainer/aten.h"
#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/models/decoder.h"
#include "trainer/models/model.h"
#include "trainer/saving/initial_weights.h"

namespace tycho {

/// targets[t] = labels[t + 1], as the other systems shift them.
inline Tensor shifted_targets(const Tensor& labels_BT) {
  const int64_t seq = labels_BT.size(1);
  Tensor targets_BT = at::full_like(labels_BT, -100);
  targets_BT.slice(1, 0, seq - 1).copy_(labels_BT.slice(1, 1, seq));
  return targets_BT;
}

/// The folder of a tiny model of transformers, made by tests/golden/family_models.py.
inline std::string family_folder(const std::string& name) {
  return std::string(TYCHO_GOLDEN_DIR) + "/families/" + name;
}

/// `folder` has config.json and weights; `oracle`, a safetensors file, has ids, labels [B, T], losses [B],
/// grad.<name> of the sum of all losses, and perhaps sequence_id [B, T].
class OracleModel {
 public:
  OracleModel(const std::string& folder, const std::string& oracle)
      : config(read_hf_config(read_hf_config_file(folder), "config.json").model), folder_(folder) {
    bytes_ = tensors_of_file(oracle);
    for (const SafetensorsEntry& entry : read_safetensors_header(oracle).entries) {
      const auto dtype = entry.dtype == "I32" ? at::kInt : entry.dtype == "F64" ? at::kDouble : at::kFloat;
      wanted_[entry.name] =
          at::from_blob(bytes_.at(entry.name).data(), entry.shape, at::TensorOptions().dtype(dtype));
    }
  }

  bool has(const std::string& name) const { return wanted_.contains(name); }
  const Tensor& wanted(const std::string& name) const { return wanted_.at(name); }
  /// Tensors whose names begin so.
  size_t count(const std::string& prefix) const {
    return static_cast<size_t>(std::count_if(wanted_.begin(), wanted_.end(),
                                             [&](const auto& one) { return one.first.starts_with(prefix); }));
  }
  LocalUnits load(UnitUse use, at::ScalarType dtype = at::kFloat) const {
    LocalUnits units(model_layout(config).units, dtype, at::kCPU, use);
    load_initial_weights(folder_, config, units.owned());
    return units;
  }

  /// Losses of rows, to `loss_error` relative, and every gradient, to 1e-5 relative. A bias of all keys has
  /// no gradient but what rounding leaves: at most 1e-5, or `rounding` of the largest gradient where it is
  /// given.
  /// `without_row`: row of the embedding's gradient that is not compared.
  void expect_losses_and_gradients(double loss_error = 1e-5, double rounding = 0,
                                   std::optional<int64_t> without_row = {}) const {
    LocalUnits units = load(UnitUse::kTrain);
    const Tensor& ids_BT = wanted("ids");
    const int64_t batch = ids_BT.size(0), seq = ids_BT.size(1);
    Model model(config, units, {batch, seq}, at::kFloat, at::kCPU);
    MicroBatch micro = {ids_BT.reshape({-1}), shifted_targets(wanted("labels")).reshape({-1}), true, true};
    if (has("sequence_id")) micro.documents_N = wanted("sequence_id").reshape({-1});
    const Tensor rows = model.losses(micro.tokens_N, micro.targets_N, micro.documents_N)
                            .view({batch, seq})
                            .sum(1, false, at::kDouble);
    EXPECT_LT((rows - wanted("losses")).abs().max().item<double>(),
              loss_error * wanted("losses").max().item<double>());
    model.forward_backward(micro, at::ones({1}));
    const double floor = rounding == 0 ? 1e-5 : rounding * largest_gradient();
    size_t compared = 0;
    for (GatheredUnit& unit : units.gathered())
      for (size_t i = 0; i < unit.spec().params.size(); ++i) {
        const std::string& name = unit.spec().params[i].name;
        const std::vector<Tensor> parts = gradients_of(name);
        const Tensor gradient = at::concat(parts, 0);
        Tensor own = unit.grads()[i];
        if (without_row && name.ends_with("embed_tokens.weight"))
          own[*without_row].copy_(gradient[*without_row]);
        compared += parts.size();
        EXPECT_LE((own - gradient).norm().item<double>(), 1e-5 * gradient.norm().item<double>() + floor)
            << name;
      }
    EXPECT_EQ(compared, count("grad."));
  }

  ModelConfig config;

 private:
  double largest_gradient() const {
    double largest = 0;
    for (const auto& [name, gradient] : wanted_)
      if (name.starts_with("grad.")) largest = std::max(largest, gradient.norm().item<double>());
    return largest;
  }
  /// The gradient of a parameter; of projections that the other system keeps apart, those of all three.
  std::vector<Tensor> gradients_of(const std::string& name) const {
    constexpr std::string_view kFused = ".Wqkv.";
    const size_t at = name.find(kFused);
    if (has("grad." + name) || at == std::string::npos) return {wanted("grad." + name)};
    std::vector<Tensor> parts;
    for (const char* part : {".Wq.", ".Wk.", ".Wv."})
      parts.push_back(wanted("grad." + name.substr(0, at) + part + name.substr(at + kFused.size())));
    return parts;
  }

  std::string folder_;
  std::map<std::string, std::string> bytes_;
  std::map<std::string, Tensor> wanted_;
};

}  // namespace tycho
