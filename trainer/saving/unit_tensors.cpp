// Slices flat buffers into named tensors, and checks names and shapes before reading.
#include "trainer/saving/unit_tensors.h"

#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/base/text/line_list.h"

namespace tycho {
namespace {

/// Adjacent elements of a buffer as a box.
struct Piece {
  Box here;     // in the rank's part of the parameter
  Box whole;    // the same elements, in the whole parameter
  bool counts;  // false: an earlier rank along tp has it too
};
struct Span {
  Box box;        // in the rank's part of the parameter
  int64_t begin;  // offset in the buffer
  std::vector<Piece> pieces;
  /// Returns true when the pieces are stored in the buffer one after the other: they are cut along its
  /// outermost dim that has more than one index.
  bool in_order() const {
    if (pieces.size() == 1) return true;
    for (size_t d = 0; d < box.shape.size(); ++d) {
      if (pieces.front().here.shape[d] != box.shape[d]) return true;
      if (box.shape[d] > 1) return false;
    }
    return true;
  }
};

std::vector<Piece> pieces_of(const ParamSpec& spec, const Box& box) {
  if (!spec.part) return {{box, box, true}};
  const auto dim = static_cast<size_t>(spec.part->dim);
  std::vector<Piece> pieces;
  for (const ParamPart::Run& run : spec.part->runs) {
    const int64_t from = std::max(box.offsets[dim], run.here),
                  to = std::min(box.offsets[dim] + box.shape[dim], run.here + run.size);
    if (from >= to) continue;
    Piece piece = {box, box, run.counts};
    piece.here.offsets[dim] = from, piece.here.shape[dim] = piece.whole.shape[dim] = to - from;
    piece.whole.offsets[dim] = from - run.here + run.there;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

/// Calls body(extent, span) for every span of the extents.
template <class Body>
void for_spans(const std::vector<Extent>& extents, const Body& body) {
  for (const Extent& e : extents) {
    int64_t begin = e.begin;
    for (const Box& box : boxes_of_range(e.spec->shape, e.first, e.first + e.size())) {
      body(e, Span{box, begin, pieces_of(*e.spec, box)});
      begin += volume(box);
    }
  }
}

/// Reorders the pieces of a span, which begins at `data`, so that they follow one another.
void put_in_order(const Span& span, float* data) {
  const std::vector<float> mixed(data, data + volume(span.box));
  for (const Piece& piece : span.pieces) {
    for_runs(piece.here, span.box, piece.here,
             [&](int64_t i, int64_t j, int64_t n) { std::copy_n(mixed.data() + i, n, data + j); });
    data += volume(piece.here);
  }
}

}  // namespace

std::string state_name(const std::string& buffer, const std::string& param) {
  if (buffer == kAverageBuffer) return average_name(param);
  return buffer.empty() ? param : "optimizer." + buffer + "." + param;
}

std::vector<OwnedRange> saved_ranges(const std::vector<OwnedRange>& ranges) {
  std::vector<OwnedRange> saved = ranges;
  std::erase_if(saved, [](const OwnedRange& range) { return range.layout.spec().base; });
  return saved;
}

std::vector<FlatState> flat_states(const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                                   WeightAverage* average) {
  std::vector<FlatState> state;
  for (const OwnedRange& range : ranges) state.push_back({"", &range.extents, range.weights()});
  const auto add = [&](const std::vector<StateBuffer>& buffers) {
    for (const StateBuffer& buffer : buffers) state.push_back({buffer.name, &buffer.extents, buffer.flat});
  };
  if (optimizer != nullptr) add(optimizer->state());
  if (average != nullptr) add(average->state());
  return state;
}

bool reorders(const FlatState& state) {
  bool any = false;
  for_spans(*state.extents, [&](const Extent&, const Span& span) { any |= !span.in_order(); });
  return any;
}

std::vector<TensorBytes> unit_tensor_bytes(const FlatState& state, const Tensor& host) {
  std::vector<TensorBytes> tensors;
  auto* data = static_cast<float*>(host.data_ptr());
  for_spans(*state.extents, [&](const Extent& e, const Span& span) {
    float* at = data + span.begin;
    if (!span.in_order()) put_in_order(span, at);
    for (const Piece& piece : span.pieces) {
      const int64_t count = volume(piece.whole);
      TensorBytes tensor = {state_name(state.buffer, e.spec->name), "F32", piece.whole.shape, at, count * 4};
      if (piece.whole.shape != e.spec->whole_shape())
        tensor.global_shape = e.spec->whole_shape(), tensor.offsets = piece.whole.offsets;
      at += count;
      if (piece.counts) tensors.push_back(std::move(tensor));
    }
  });
  return tensors;
}

namespace {

// What keeps `state` from being filled, one line for each tensor.
std::vector<std::string> misfits(const CheckpointReader& reader, const FlatState& state) {
  std::vector<std::string> lines;
  for (const Extent& e : *state.extents) {
    const std::string name = state_name(state.buffer, e.spec->name);
    if (!reader.has(name)) {
      lines.push_back(fmt::format("{} is missing", name));
    } else if (const auto found = reader.describe(name);
               found.shape != e.spec->whole_shape() || found.dtype != "F32") {
      lines.push_back(fmt::format("{}: expected F32 [{}], got {} [{}]", found.name,
                                  fmt::join(e.spec->whole_shape(), ", "), found.dtype,
                                  fmt::join(found.shape, ", ")));
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

void check_fit(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
               WeightAverage* average) {
  std::vector<std::string> of_weights, of_optimizer, of_average;
  for (const FlatState& state : flat_states(ranges, optimizer, average)) {
    auto& lines = state.buffer.empty()             ? of_weights
                  : state.buffer == kAverageBuffer ? of_average
                                                   : of_optimizer;
    for (std::string& line : misfits(reader, state)) lines.push_back(std::move(line));
  }
  const std::string& path = reader.info().path;
  if (of_weights.empty() && of_optimizer.empty() && of_average.empty()) return;
  if (of_weights.empty() && !of_optimizer.empty() && is_weights_only(reader))
    fail(ExitCode::kUnusable,
         "[checkpoint] {} has weights but no optimizer state, so it cannot be resumed: train from its "
         "weights in a new run folder with model.weights={}",
         path, path);
  std::vector<std::string>& lines = !of_weights.empty()     ? of_weights
                                    : !of_optimizer.empty() ? of_optimizer
                                                            : of_average;
  const char* part = !of_weights.empty() ? "model" : !of_optimizer.empty() ? "optimizer" : "ema";
  fail(ExitCode::kUnusable,
       "[checkpoint] {} does not fit the recipe's {}:{}\nUse the recipe that it was made with, or another "
       "run_name",
       path, part, line_list(lines));
}

namespace {

// `at`: where the piece begins, or the span when the piece is spread over it.
void read_piece(const CheckpointReader& reader, const std::string& name, const Piece& piece, const Span& span,
                float* at) {
  const int64_t count = volume(piece.whole);
  if (span.in_order()) return reader.read_box(name, piece.whole, at, count * 4);
  std::vector<float> values(static_cast<size_t>(count));
  reader.read_box(name, piece.whole, values.data(), count * 4);
  for_runs(piece.here, piece.here, span.box,
           [&](int64_t i, int64_t j, int64_t n) { std::copy_n(values.data() + i, n, at + j); });
}

}  // namespace

void load_tensors(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                  const std::function<void()>& between, WeightAverage* average) {
  for (const FlatState& state : flat_states(ranges, optimizer, average)) {
    const bool in_place = state.flat.is_cpu() && state.flat.scalar_type() == at::kFloat;
    Tensor host =
        in_place ? state.flat : at::zeros(state.flat.sizes(), at::TensorOptions().dtype(at::kFloat));
    auto* data = static_cast<float*>(host.data_ptr());
    for_spans(*state.extents, [&](const Extent& e, const Span& span) {
      float* at = data + span.begin;
      for (const Piece& piece : span.pieces) {
        if (between) between();
        read_piece(reader, state_name(state.buffer, e.spec->name), piece, span, at);
        if (span.in_order()) at += volume(piece.here);
      }
    });
    if (!in_place) state.flat.copy_(host);
  }
  for (const OwnedRange& range : ranges) range.refresh_from_master();
}

}  // namespace tycho
