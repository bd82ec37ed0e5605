// Converts between units and checkpoints: the names and bytes of weights and optimizer state.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// One flat buffer of this rank that a checkpoint holds: weights (buffer ""), state of the optimizer
/// ("exp_avg"), or averages (kAverageBuffer).
struct FlatState {
  std::string buffer;
  const std::vector<Extent>* extents;  // of `flat`; the range's, the optimizer's or the average's
  Tensor flat;                         // fp32; bf16 where there are no fp32 master weights
};

/// Those that checkpoints hold: all, but for the base of adapters.
std::vector<OwnedRange> saved_ranges(const std::vector<OwnedRange>& ranges);

/// All flat buffers, weights first. `optimizer` and `average` may be null: there is none.
std::vector<FlatState> flat_states(const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                                   WeightAverage* average = nullptr);

/// The parameters of a buffer by name, over its copy in host memory (fp32, same layout). Of a parameter that
/// the buffer holds a part of, pieces that are boxes: at most 2 d - 1 for d dims, each once for every section
/// of a parameter that ranks along tp share. What an earlier one of those ranks has too is left out. A copy
/// that reorders() is changed: each box becomes what the checkpoint holds.
std::vector<TensorBytes> unit_tensor_bytes(const FlatState& state, const Tensor& host);
/// Whether boxes of the buffer are none of its stretches: unit_tensor_bytes then needs a copy of its own.
bool reorders(const FlatState& state);

/// Weights are named as Hugging Face names them, state "optimizer.<buffer>.<name>", averages average_name().
std::string state_name(const std::string& buffer, const std::string& param);

/// Throws Error (kUnusable) that lists tensors which are missing from a checkpoint or have another shape.
/// Reads none of them. `optimizer` and `average` may be null.
void check_fit(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
               WeightAverage* average = nullptr);

/// Fills ranges, optimizer and average unless null, from a checkpoint that fits. Every byte is verified as it
/// is read, in the order of the file; an Error (kUnusable) half-way leaves some tensors filled and others
/// not. `between`, if given, is called before each piece of a tensor; what it throws ends the reading.
void load_tensors(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                  const std::function<void()>& between = {}, WeightAverage* average = nullptr);

}  // namespace tycho
