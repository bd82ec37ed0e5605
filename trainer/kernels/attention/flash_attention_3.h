// FlashAttention-3 (Shah et al. 2024, arXiv:2407.08608) for GPUs of compute capability 9.x: an extension of
// LibTorch in a package of its own, whose operators flash_attn_3::fwd and bwd are called through LibTorch's
// dispatcher.
#pragma once
#include <filesystem>
#include <string>

#include "trainer/kernels/attention/flash_calls.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Returns the path of the library: TYCHO_FLASH_ATTN_3, else flash_attn_3/_C*.so in `packages`, the folder
/// that LibTorch's package is in; "" if there is none.
std::string flash_3_path(const std::filesystem::path& packages);
/// Returns the folder that LibTorch's package is in.
std::filesystem::path torch_packages();

/// Opens the library, once in a process, when this is called first. Returns the reason why it cannot be used,
/// and what to do; "" if it can.
const std::string& flash_3_problem();

/// Computes a call from bf16 heads. Throws Error where there is a problem.
FlashResult flash_3_forward(const FlashCall& call, const ScoreRules& rules, const FlashHeads& in);
/// Writes the gradients of a call's heads to `into`, views like `in` whose last dim is contiguous, or if that
/// is empty to new memory. Returns the part of them that the call writes. Adds in a fixed order unless
/// rules.any_order.
FlashHeads flash_3_backward(const FlashCall& call, const ScoreRules& rules, const FlashHeads& in,
                            const Tensor& out, const Tensor& dout, const Tensor& log_sum_exp,
                            const FlashHeads& into);

}  // namespace tycho
