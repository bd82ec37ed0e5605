// Permutations of PyTorch 2.15, made by tests/golden/order/make_finetuning_order_goldens.py.
#include "trainer/data/order/torch_permutation.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::crc32_of;
using testing::golden;

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
  EXPECT_EQ(crc32_of(order), 51255566u) << "of torch.randperm(1000000) with seed 3";
}

}  // namespace
}  // namespace tycho
