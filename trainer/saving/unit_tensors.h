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
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// One flat buffer of this rank that a checkpoint holds: weights (buffer ""), state of the optimizer
/// ("exp_avg"), or averages (kAverageBuffer).
struct FlatState {
  std::string buffer;
  const std::vector<Extent>* extents;  // extents of `flat`; those of the range, the optimizer or the average
  Tensor flat;                         // fp32; bf16 when there are no fp32 master weights
};

/// Returns the ranges that checkpoints hold: all except the base weights of adapters.
std::vector<OwnedRange> saved_ranges(const std::vector<OwnedRange>& ranges);

/// Returns all flat buffers, weights first. `optimizer` and `average` may be null.
std::vector<FlatState> flat_states(const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                                   WeightAverage* average = nullptr);

/// Returns the parameters of a buffer by name, over its copy in host memory (fp32, same layout). A parameter
/// that the buffer holds in part gives pieces that are boxes: at most 2 d - 1 for d dims, each once for every
/// section of a parameter that ranks along tp share. Leaves out what an earlier one of those ranks has too.
/// Changes a copy for which reorders() is true: each box becomes what the checkpoint holds.
std::vector<TensorBytes> unit_tensor_bytes(const FlatState& state, const Tensor& host);
/// Returns true when boxes of the buffer are not contiguous in it; unit_tensor_bytes then needs a copy of its
/// own.
bool reorders(const FlatState& state);

/// Returns the name of a tensor: Hugging Face's for weights, "optimizer.<buffer>.<name>" for state,
/// average_name() for averages.
std::string state_name(const std::string& buffer, const std::string& param);

/// Throws Error (kUnusable) that lists tensors that are missing from a checkpoint or have another shape.
/// Reads no tensor. `optimizer` and `average` may be null.
void check_fit(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
               WeightAverage* average = nullptr);

/// Fills ranges, optimizer and average, unless null, from a checkpoint that fits. Verifies every byte while
/// it reads, in the order of the file; an Error (kUnusable) half-way leaves some tensors filled and others
/// not. Calls `between`, if given, before each piece of a tensor; an exception from it ends the reading.
void load_tensors(const CheckpointReader& reader, const std::vector<OwnedRange>& ranges, Optimizer* optimizer,
                  const std::function<void()>& between = {}, WeightAverage* average = nullptr);

}  // namespace tycho
