// Permutations of PyTorch 2.15, made by tests/golden/order/make_finetuning_order_goldens.py.
#include "trainer/data/order/torch_permutation.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::golden;

uint32_t crc32_of(const std::vector<uint32_t>& ids) {
  uint32_t crc = ~0u;
  for (const uint32_t id : ids)
    for (int byte = 0; byte < 4; ++byte) {
      crc ^= id >> (8 * byte) & 0xff;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
  return ~crc;
}

TEST(TorchPermutation, IsTheOrderOfTorchsSampler) {
  int compared = 0;
  for (const Json& one : Json::parse(read_file(golden("order/torch_sampler.json"))))
    for (const auto& [epoch, ids] : one.at("epochs").items()) {
      std::vector<uint32_t> order(one.at("rows").get<size_t>());
      torch_permutation(order, one.at("seed").get<uint64_t>() + std::stoull(epoch));
      order.resize(ids.size());  // drop_last
      EXPECT_EQ(order, ids.get<std::vector<uint32_t>>()) << one.at("rows") << " epoch " << epoch;
      ++compared;
    }
  EXPECT_EQ(compared, 12);
}

TEST(TorchPermutation, OfAMillionRowsIsTorchs) {
  std::vector<uint32_t> order(1'000'000);
  torch_permutation(order, 3);
  EXPECT_EQ(crc32_of(order), 1811777788u) << "of torch.randperm(1000000) with seed 3";
}

}  // namespace
}  // namespace tycho
