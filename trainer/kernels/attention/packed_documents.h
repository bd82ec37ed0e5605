// Which tokens of packed rows belong together.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// The documents that B rows of T tokens were packed from. Default: every row is one.
struct PackedDocuments {
  Tensor number_N;        // int32 [B * T] on the model's device: tokens see equal numbers only; or undefined
  Tensor position_N;      // int32: of a rank's tokens within their documents; undefined: all of whole rows
  Tensor first_token_S1;  // int32 [S + 1] on a GPU, undefined on a CPU: see document_starts
  int64_t num_longest = 0;  // tokens of the longest document; with first_token_S1
};

/// number_N: int32 [B * T] on the host, not falling along a row of `seq` tokens; undefined: no documents.
/// Throws Error for anything else.
PackedDocuments documents_on(const at::Device& device, const Tensor& number_N, int64_t seq);

/// The first token of each document among B * T, rows cut documents too; and B * T at last.
std::vector<int32_t> document_starts(const Tensor& number_N, int64_t seq);

}  // namespace tycho
