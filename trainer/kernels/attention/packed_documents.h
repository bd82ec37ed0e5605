// Documents of packed rows.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Documents of one row that have tokens in a span of it. Queries are a document's tokens in the span; keys
/// are its tokens up to the end of the span.
struct SpanDocuments {
  int64_t first_token = 0;                  // first token, in the row, of the first of these documents
  Tensor first_query_S1;                    // int32 [S + 1] on a GPU, counted from the span's first token
  Tensor first_key_S1;                      // int32 [S + 1] on a GPU, counted from first_token
  int64_t most_queries = 0, most_keys = 0;  // largest numbers of one document
  int64_t first_queries = 0;                // queries of the first document
};

/// Documents that B rows of T tokens were packed from. Default: every row is one document.
struct PackedDocuments {
  Tensor number_N;    // int32 [B * T] on the model's device: tokens see equal numbers only; or undefined
  Tensor position_N;  // int32: positions of a rank's tokens within their documents; undefined: the rank has
                      // whole rows
  Tensor first_token_S1;    // int32 [S + 1] on a GPU, undefined on a CPU: see document_starts
  int64_t num_longest = 0;  // tokens of the longest document; with first_token_S1
  std::vector<std::array<SpanDocuments, 2>> spans_B;  // for ranks that share rows, on a GPU
};

/// Makes the documents for a device. number_N: int32 [B * T] on the host, never decreasing along a row of
/// `seq` tokens; undefined: no documents. Throws Error for anything else. spans: the two spans of each
/// row that this rank has, if it does not have whole rows.
PackedDocuments documents_on(const at::Device& device, const Tensor& number_N, int64_t seq,
                             const std::optional<std::array<TokenSpan, 2>>& spans = {});

/// Returns the first token of each document among B * T, where the end of a row also ends a document; the
/// last element is B * T.
std::vector<int32_t> document_starts(const Tensor& number_N, int64_t seq);

}  // namespace tycho
