// Between units and checkpoints.
#include "trainer/restore/unit_tensors.h"

#include <fmt/ranges.h>

#include "trainer/base/error.h"

namespace tycho {

std::string state_name(const std::string& buffer, const std::string& param) {
  return buffer.empty() ? param : "optimizer." + buffer + "." + param;
}

std::vector<FlatState> flat_states(std::vector<FlatUnit>& units, Optimizer* optimizer) {
  std::vector<FlatState> state;
  for (const FlatUnit& unit : units)
    state.push_back(
        {"", &unit.extents(), unit.flat_master().defined() ? unit.flat_master() : unit.flat_params()});
  if (optimizer == nullptr) return state;
  for (const StateBuffer& buffer : optimizer->state())
    state.push_back({buffer.name, &buffer.extents, buffer.flat});
  return state;
}

std::vector<TensorBytes> unit_tensor_bytes(const FlatState& state, const Tensor& host) {
  std::vector<TensorBytes> tensors;
  const auto* data = static_cast<const std::byte*>(host.data_ptr());
  for (const Extent& e : *state.extents)
    tensors.push_back({state_name(state.buffer, e.spec->name), "F32", e.spec->shape, data + e.begin * 4,
                       (e.end - e.begin) * 4});
  return tensors;
}

void check_fit(const CheckpointReader& reader, std::vector<FlatUnit>& units, Optimizer* optimizer) {
  std::string problems;
  for (const FlatState& state : flat_states(units, optimizer))
    for (const Extent& e : *state.extents) {
      const std::string name = state_name(state.buffer, e.spec->name);
      if (!reader.has(name))
        problems += fmt::format("\n  {} is missing", name);
      else if (reader.describe(name).shape != e.spec->shape || reader.describe(name).dtype != "F32")
        problems +=
            fmt::format("\n  {}: wanted F32 [{}], found {} [{}]", name, fmt::join(e.spec->shape, ", "),
                        reader.describe(name).dtype, fmt::join(reader.describe(name).shape, ", "));
    }
  if (!problems.empty())
    fail(ExitCode::kUnusable,
         "[checkpoint] {} does not fit the recipe's model:{}\nUse the recipe that it was made with, or "
         "another run_name",
         reader.info().path, problems);
}

void load_tensors(const CheckpointReader& reader, std::vector<FlatUnit>& units, Optimizer* optimizer) {
  for (const FlatState& state : flat_states(units, optimizer)) {
    const bool in_place = state.flat.is_cpu() && state.flat.scalar_type() == at::kFloat;
    Tensor host =
        in_place ? state.flat : at::empty(state.flat.sizes(), at::TensorOptions().dtype(at::kFloat));
    auto* data = static_cast<std::byte*>(host.data_ptr());
    for (const Extent& e : *state.extents)
      reader.read(state_name(state.buffer, e.spec->name), data + e.begin * 4, (e.end - e.begin) * 4);
    if (!in_place) state.flat.copy_(host);
  }
  for (FlatUnit& unit : units) unit.refresh_from_master();
}

}  // namespace tycho
