// Copies weights parameter by parameter, in the order of the layout.
#include "trainer/restore/initial_weights.h"

#include <ATen/ops/empty.h>

#include "trainer/convert/hf_folder.h"
#include "trainer/convert/hf_import.h"
#include "trainer/restore/unit_tensors.h"

namespace tycho {
namespace {

void load_hf_weights(const std::string& path, const ModelConfig& model, std::vector<FlatUnit>& units) {
  const ModelLayout layout = model_layout(model);
  const HfFolder folder = open_hf_folder(path);
  const HfMatch match = match_hf_tensors(layout, folder);
  size_t next = 0;
  for (const FlatState& state : flat_states(units, nullptr)) {
    Tensor host = at::empty(state.flat.sizes(), at::TensorOptions().dtype(at::kFloat)).zero_();
    // Units and their parameters lie in the order of the layout.
    for (const Extent& extent : *state.extents)
      read_hf_param(match.params[next++], host.data_ptr<float>() + extent.begin, 0,
                    extent.end - extent.begin);
    state.flat.copy_(host);
  }
  for (FlatUnit& unit : units) unit.refresh_from_master();
}

}  // namespace

const std::string& initial_weights_path(const ModelConfig& model) {
  return std::visit([](const auto& family) -> const std::string& { return family.weights; }, model.value);
}

void load_initial_weights(const std::string& path, const ModelConfig& model, std::vector<FlatUnit>& units) {
  if (is_hf_folder(path)) return load_hf_weights(path, model, units);
  const CheckpointReader reader(find_checkpoint(path));
  check_fit(reader, units, nullptr);
  load_tensors(reader, units, nullptr);
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
