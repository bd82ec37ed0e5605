// Documents as attention on each kind of device wants them: numbers of tokens, or where each one starts.
#include "trainer/kernels/attention/packed_documents.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/host_copies.h"

namespace tycho {

std::vector<int32_t> document_starts(const Tensor& number_N, int64_t seq) {
  const int64_t tokens = number_N.defined() ? number_N.numel() : 0;
  TYCHO_CHECK(seq > 0 && tokens > 0 && tokens % seq == 0,
              "[documents] wanted whole rows of {} tokens, got {} tokens", seq, tokens);
  check_tensor("documents", "numbers", number_N, {tokens}, at::kInt, at::kCPU);
  const auto* number = number_N.const_data_ptr<int32_t>();
  std::vector<int32_t> starts;
  for (int64_t token = 0; token < tokens; ++token) {
    const bool begins_row = token % seq == 0;
    TYCHO_CHECK(begins_row || number[token] >= number[token - 1],
                "[documents] wanted numbers that do not fall along a row, got {} after {}", number[token],
                number[token - 1]);
    if (begins_row || number[token] != number[token - 1]) starts.push_back(static_cast<int32_t>(token));
  }
  starts.push_back(static_cast<int32_t>(tokens));
  return starts;
}

PackedDocuments documents_on(const at::Device& device, const Tensor& number_N, int64_t seq) {
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
  return {copied_to(device, number_N), copied_to(device, position_N),
          copied_to(device, at::tensor(starts, at::kInt)), longest};
}

}  // namespace tycho
