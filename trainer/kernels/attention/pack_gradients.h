// Gradients of attention as a GPU's libraries return them, written into rows and rotated back in one pass.
#pragma once
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/rope.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Writes dq [B, T, H, d], dk and dv [B, T, K, d], or all without B as [B*T, ..], into `gradients`. With
/// `rotation` queries and keys are multiplied by the transposes of its tables, as by rope(); without its
/// tables they are only copied. Memory of any layout is taken, at the speed of memory where a head's elements
/// are contiguous and sequences follow each other.
void pack_gradients(const AttentionShape& shape, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                    const RopeTables& rotation, const AttentionRows& gradients);

}  // namespace tycho
