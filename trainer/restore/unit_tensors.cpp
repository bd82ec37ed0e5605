// Slices flat buffers into named tensors, and checks names and shapes before reading.
#include "trainer/restore/unit_tensors.h"

#include <ATen/ops/empty.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Calls body(extent, box of the parameter, where the box begins in the buffer) for all that extents hold.
template <class Body>
void for_boxes(const std::vector<Extent>& extents, const Body& body) {
  for (const Extent& e : extents) {
    int64_t begin = e.begin;
    for (const Box& box : boxes_of_range(e.spec->shape, e.first, e.first + e.size())) {
      body(e, box, begin);
      begin += volume(box);
    }
  }
}

}  // namespace

std::string state_name(const std::string& buffer, const std::string& param) {
  return buffer.empty() ? param : "optimizer." + buffer + "." + param;
}

std::vector<FlatState> flat_states(const std::vector<OwnedRange>& ranges, Optimizer* optimizer) {
  std::vector<FlatState> state;
  for (const OwnedRange& range : ranges) state.push_back({"", &range.extents, range.weights()});
  if (optimizer == nullptr) return state;
  for (const StateBuffer& buffer : optimizer->state())
    state.push_back({buffer.name, &buffer.extents, buffer.flat});
  return state;
}

std::vector<TensorBytes> unit_tensor_bytes(const FlatState& state, const Tensor& host) {
  std::vector<TensorBytes> tensors;
  const auto* data = static_cast<const std::byte*>(host.data_ptr());
  for_boxes(*state.extents, [&](const Extent& e, const Box& box, int64_t begin) {
    TensorBytes tensor = {state_name(state.buffer, e.spec->name), "F32", box.shape, data + begin * 4,
                          volume(box) * 4};
    if (!e.is_whole()) tensor.global_shape = e.spec->shape, tensor.offsets = box.offsets;
    tensors.push_back(std::move(tensor));
  });
  return tensors;
}

namespace {

constexpr size_t kShownMisfits = 12;

// What keeps `state` from being filled, one line for each tensor.
std::vector<std::string> misfits(const CheckpointReader& reader, const FlatState& state) {
  std::vector<std::string> lines;
  for (const Extent& e : *state.extents) {
    const std::string name = state_name(state.buffer, e.spec->name);
    if (!reader.has(name)) {
      lines.push_back(fmt::format("{} is missing", name));
    } else if (const auto found = reader.describe(name);
               found.shape != e.spec->shape || found.dtype != "F32") {
      lines.push_back(fmt::format("{}: wanted F32 [{}], found {} [{}]", name, fmt::join(e.spec->shape, ", "),
                                  found.dtype, fmt::join(found.shape, ", ")));
    }
  }
  return lines;
}

bool is_weights_only(const CheckpointReader& reader) {
  const std::vector<std::string> names = reader.names();
  return std::none_of(names.begin(), names.end(),
                      [](const std::string& name) { return name.starts_with("optimizer."); });
}

}  // namespace

void check_fit(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer) {
  std::vector<std::string> of_weights, of_optimizer;
  for (const FlatState& state : flat_states(ranges, optimizer)) {
    auto& lines = state.buffer.empty() ? of_weights : of_optimizer;
    for (std::string& line : misfits(reader, state)) lines.push_back(std::move(line));
  }
  const std::string& path = reader.info().path;
  if (of_weights.empty() && of_optimizer.empty()) return;
  if (of_weights.empty() && is_weights_only(reader))
    fail(ExitCode::kUnusable,
         "[checkpoint] {} has weights but no optimizer state, so it cannot be resumed: train from its "
         "weights in a new run folder with model.weights={}",
         path, path);
  std::vector<std::string>& lines = of_weights.empty() ? of_optimizer : of_weights;
  const size_t more = lines.size() > kShownMisfits ? lines.size() - kShownMisfits : 0;
  lines.resize(lines.size() - more);
  fail(ExitCode::kUnusable,
       "[checkpoint] {} does not fit the recipe's {}:\n  {}{}\nUse the recipe that it was made with, or "
       "another run_name",
       path, of_weights.empty() ? "optimizer" : "model", fmt::join(lines, "\n  "),
       more > 0 ? fmt::format("\n  and {} more", more) : "");
}

void load_tensors(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                  const std::function<void()>& between) {
  for (const FlatState& state : flat_states(ranges, optimizer)) {
    const bool in_place = state.flat.is_cpu() && state.flat.scalar_type() == at::kFloat;
    Tensor host =
        in_place ? state.flat : at::empty(state.flat.sizes(), at::TensorOptions().dtype(at::kFloat));
    auto* data = static_cast<std::byte*>(host.data_ptr());
    for_boxes(*state.extents, [&](const Extent& e, const Box& box, int64_t begin) {
      if (between) between();
      reader.read_box(state_name(state.buffer, e.spec->name), box, data + begin * 4, volume(box) * 4);
    });
    if (!in_place) state.flat.copy_(host);
  }
  for (const OwnedRange& range : ranges) range.refresh_from_master();
}

}  // namespace tycho
