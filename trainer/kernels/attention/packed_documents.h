// Which tokens of packed rows belong together.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// The documents of one row that some of its tokens, a stretch, are of: what of each lies in the stretch, and
/// all of it up to there.
struct StretchDocuments {
  int64_t first_token = 0;  // of the row: where the first of these documents begins
  Tensor first_query_S1;    // int32 [S + 1] on a GPU, counted from the stretch's first token on
  Tensor first_key_S1;      // the same, counted from first_token on
  int64_t most_queries = 0, most_keys = 0;  // of one document
  int64_t first_queries = 0;                // of the first one
};

/// The documents that B rows of T tokens were packed from. Default: every row is one.
struct PackedDocuments {
  Tensor number_N;        // int32 [B * T] on the model's device: tokens see equal numbers only; or undefined
  Tensor position_N;      // int32: of a rank's tokens within their documents; undefined: all of whole rows
  Tensor first_token_S1;  // int32 [S + 1] on a GPU, undefined on a CPU: see document_starts
  int64_t num_longest = 0;  // tokens of the longest document; with first_token_S1
  std::vector<std::array<StretchDocuments, 2>> stretches_B;  // of ranks that share rows, on a GPU
};

/// number_N: int32 [B * T] on the host, not falling along a row of `seq` tokens; undefined: no documents.
/// Throws Error for anything else. stretches: of each row, where this rank has no more of it.
PackedDocuments documents_on(const at::Device& device, const Tensor& number_N, int64_t seq,
                             const std::optional<std::array<TokenStretch, 2>>& stretches = {});

/// The first token of each document among B * T, rows cut documents too; and B * T at last.
std::vector<int32_t> document_starts(const Tensor& number_N, int64_t seq);

}  // namespace tycho
