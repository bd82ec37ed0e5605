// Converts documents to the form that attention on each kind of device needs: a number for each token, or the
// starts of documents.
#include "trainer/kernels/attention/packed_documents.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/host_copies.h"

namespace tycho {
namespace {

/// Finds the documents of a span. [begin, end): first tokens of a row's documents among the tokens of all
/// rows, and the end of the last one.
SpanDocuments documents_of(const at::Device& device, const int32_t* begin, const int32_t* end,
                           const TokenSpan& span) {
  const int64_t row = *begin, last = span.first + span.count;
  SpanDocuments documents;
  std::vector<int32_t> queries, keys;
  for (const int32_t* document = begin; document + 1 < end; ++document) {
    const int64_t first = document[0] - row, behind = std::min<int64_t>(document[1] - row, last);
    if (behind <= span.first || first >= last) continue;
    if (keys.empty()) {
      documents.first_token = first, documents.first_queries = behind - span.first;
      queries.push_back(0), keys.push_back(0);
    }
    queries.push_back(static_cast<int32_t>(behind - span.first));
    keys.push_back(static_cast<int32_t>(behind - documents.first_token));
    documents.most_queries = std::max<int64_t>(documents.most_queries, queries.back() - queries.rbegin()[1]);
    documents.most_keys = std::max<int64_t>(documents.most_keys, keys.back() - keys.rbegin()[1]);
  }
  const Tensor both_2S1 =
      copied_to(device, at::stack({at::tensor(queries, at::kInt), at::tensor(keys, at::kInt)}));
  documents.first_query_S1 = both_2S1[0], documents.first_key_S1 = both_2S1[1];
  return documents;
}

std::vector<std::array<SpanDocuments, 2>> span_documents(const at::Device& device,
                                                         const std::vector<int32_t>& starts, int64_t seq,
                                                         const std::array<TokenSpan, 2>& spans) {
  std::vector<std::array<SpanDocuments, 2>> rows_B;
  for (auto begin = starts.begin(); begin + 1 < starts.end();) {
    const auto next = std::lower_bound(begin, starts.end(), *begin + seq);
    const auto of = [&](const TokenSpan& s) { return documents_of(device, &*begin, &*next + 1, s); };
    rows_B.push_back({of(spans[0]), of(spans[1])});
    begin = next;
  }
  return rows_B;
}

}  // namespace

std::vector<int32_t> document_starts(const Tensor& number_N, int64_t seq) {
  const int64_t tokens = number_N.defined() ? number_N.numel() : 0;
  TYCHO_CHECK(seq > 0 && tokens > 0 && tokens % seq == 0,
              "[documents] expected whole rows of {} tokens, got {} tokens", seq, tokens);
  check_tensor("documents", "numbers", number_N, {tokens}, at::kInt, at::kCPU);
  const auto* number = number_N.const_data_ptr<int32_t>();
  std::vector<int32_t> starts;
  for (int64_t token = 0; token < tokens; ++token) {
    const bool begins_row = token % seq == 0;
    TYCHO_CHECK(begins_row || number[token] >= number[token - 1],
                "[documents] expected numbers that do not fall along a row, got {} after {}", number[token],
                number[token - 1]);
    if (begins_row || number[token] != number[token - 1]) starts.push_back(static_cast<int32_t>(token));
  }
  starts.push_back(static_cast<int32_t>(tokens));
  return starts;
}

PackedDocuments documents_on(const at::Device& device, const Tensor& number_N, int64_t seq,
                             const std::optional<std::array<TokenSpan, 2>>& spans) {
  if (!number_N.defined()) return {};
  const std::vector<int32_t> starts = document_starts(number_N, seq);
  Tensor position_N = at::empty_like(number_N);
  int64_t longest = 0;
  for (size_t i = 1; i < starts.size(); ++i) {
    int32_t* first = position_N.mutable_data_ptr<int32_t>() + starts[i - 1];
    std::iota(first, first + (starts[i] - starts[i - 1]), 0);
    longest = std::max<int64_t>(longest, starts[i] - starts[i - 1]);
  }
  if (device.is_cpu()) return {.number_N = number_N, .position_N = position_N};
  PackedDocuments documents = {copied_to(device, number_N), copied_to(device, position_N),
                               copied_to(device, at::tensor(starts, at::kInt)), longest};
  if (spans) documents.spans_B = span_documents(device, starts, seq, *spans);
  return documents;
}

}  // namespace tycho
