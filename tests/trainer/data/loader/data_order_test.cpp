// From keys of a recipe to an order of samples.
#include "trainer/data/loader/data_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/packed_chat_reader.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

using testing::golden;
using testing::TempDir;

/// Orders of LLM Foundry's StreamingFinetuningDataset, made by
/// tests/golden/order/make_finetuning_order_goldens.py.
class FinetuningOrderTest : public ::testing::Test {
 protected:
  /// Writes prompts with responses as MDS; no two rows are equal. Rows of `empty` have no response.
  void write_rows(const std::vector<int64_t>& shards, const std::set<int64_t>& empty = {}) {
    std::filesystem::remove_all(config_.path);
    std::filesystem::create_directories(config_.path);
    Json all = Json::array();
    int64_t row = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
      const TempDir part;
      MdsWriter writer(real_files(), part.path(), {.columns = {{"prompt", "str"}, {"response", "str"}}});
      for (int64_t j = 0; j < shards[i]; ++j, ++row)
        writer.write({"9", empty.contains(row) ? "" : std::to_string(row)});
      writer.finish();
      Json index = Json::parse(read_file(part / "index.json"));
      ASSERT_EQ(index.at("shards").size(), 1u);
      const std::string name = fmt::format("shard.{:05}.mds", i);
      std::filesystem::copy(part / "shard.00000.mds", config_.path + "/" + name);
      index["shards"][0]["raw_data"]["basename"] = name;
      all.push_back(index["shards"][0]);
    }
    testing::write_text(config_.path + "/index.json", Json{{"version", 2}, {"shards", all}}.dump());
  }
  std::vector<Json> cases() const {
    return Json::parse(read_file(golden("order/finetuning.json"))).get<std::vector<Json>>();
  }
  void open(const Json& one) {
    write_rows(one.at("shards"));
    config_.shuffle = one.at("shuffle");
    config_.shuffle_seed = one.at("seed").get<int64_t>();
  }

  TempDir temp_;
  ChatConfig config_{.path = temp_ / "rows", .compat = ChatCompat::kComposer};
  RowShape shape_{.seq_len = 64, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(FinetuningOrderTest, RowsOfMdsAreVisitedAsInLlmFoundry) {
  ASSERT_EQ(cases().size(), 4u);
  for (const Json& one : cases()) {
    open(one);
    const auto data = open_chat_dataset(config_, shape_, {});
    const int64_t batch = one.at("batch");
    for (const auto& [epoch, ids] : one.at("epochs").items()) {
      const auto rows = ids.get<std::vector<uint32_t>>();
      const auto loader = make_loader({{config_}},
                                      {.seq_len = shape_.seq_len,
                                       .global_sequences = batch,
                                       .rank = 0,
                                       .num_ranks = 1,
                                       .vocab_size = shape_.vocab_size,
                                       .seed = 17,
                                       .tokenizer = shape_.tokenizer},
                                      {std::stoll(epoch), 0}, {});
      EXPECT_EQ(loader->samples_per_epoch(), std::ssize(rows));
      for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(batch))
        EXPECT_EQ(loader->next().tokens,
                  data->read_batch(std::span(rows).subspan(at, static_cast<size_t>(batch)), batch).tokens)
            << one.at("shards") << " epoch " << epoch << " row " << at;
    }
  }
}

TEST_F(FinetuningOrderTest, BatchesArePackedFromTheRowsThatLlmFoundryPacks) {
  config_.pack = true;
  config_.packing_ratio = NumberOrAuto{2, false};
  for (const Json& one : cases()) {
    open(one);
    const int64_t batch = one.at("batch");
    PackedChatReader reader(open_chat_dataset(config_, shape_, {}), {.global_sequences = batch / 2});
    const auto wanted = one.at("epochs").at("0").get<std::vector<uint32_t>>();
    std::vector<uint32_t> packed;
    for (int64_t row = 0; row < reader.num_samples(); ++row)
      for (const uint32_t example : reader.row(static_cast<uint32_t>(row))) packed.push_back(example);
    ASSERT_EQ(packed.size(), wanted.size());
    for (auto at = packed.begin(); at != packed.end(); at += batch) std::sort(at, at + batch);
    for (size_t at = 0; at < wanted.size(); at += static_cast<size_t>(batch)) {
      std::vector<uint32_t> part(wanted.begin() + static_cast<int64_t>(at),
                                 wanted.begin() + static_cast<int64_t>(at) + batch);
      std::sort(part.begin(), part.end());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), packed.begin() + static_cast<int64_t>(at)))
          << one.at("shards") << " row " << at;
    }
  }
}

/// Returns the whole global batches of an epoch.
std::vector<uint32_t> epoch_of(const SampleOrder& order, int64_t epoch, int64_t batch) {
  const auto stream = order.epoch(epoch);
  std::vector<uint32_t> ids(static_cast<size_t>(order.length() / batch * batch));
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(batch))
    stream->read(std::span(ids).subspan(at, static_cast<size_t>(batch)));
  return ids;
}

TEST_F(FinetuningOrderTest, OnSeveralMachinesRanksGetTheRowsOfLlmFoundry) {
  const auto all = Json::parse(read_file(golden("order/finetuning_machines.json")));
  ASSERT_EQ(all.size(), 3u);
  for (const Json& one : all) {
    write_rows(one.at("shards"));
    config_.shuffle_seed = one.at("seed").get<int64_t>();
    const auto sizes = open_chat_dataset(config_, shape_, {})->shard_sizes();
    const SampleOrder order = data_order(
        {{config_}}, {sizes},
        {.global_sequences = one.at("batch"), .num_ranks = one.at("ranks"), .num_nodes = one.at("machines")});
    for (const auto& [epoch, ids] : one.at("epochs").items()) {
      std::vector<uint32_t> rows = epoch_of(order, std::stoll(epoch), one.at("batch"));
      ASSERT_GE(rows.size(), ids.size());
      rows.resize(ids.size());
      EXPECT_EQ(rows, ids.get<std::vector<uint32_t>>()) << one.at("shards") << " epoch " << epoch;
    }
  }
}

TEST_F(FinetuningOrderTest, OtherRowsAreVisitedAsTorchsSamplerDoesOnAnyRanks) {
  testing::write_text(temp_ / "rows.jsonl", "");
  config_.path = temp_ / "rows.jsonl";
  for (const Json& one : Json::parse(read_file(golden("order/torch_sampler.json")))) {
    config_.shuffle_seed = one.at("seed").get<int64_t>();
    for (const int64_t machines : {1, 2})
      for (const auto& [epoch, ids] : one.at("epochs").items()) {
        const SampleOrder order =
            data_order({{config_}}, {ShardSizes{one.at("rows").get<uint32_t>()}},
                       {.global_sequences = one.at("batch"), .num_ranks = 4, .num_nodes = machines});
        std::vector<uint32_t> rows = epoch_of(order, std::stoll(epoch), one.at("batch"));
        rows.resize(ids.size());
        EXPECT_EQ(rows, ids.get<std::vector<uint32_t>>()) << one.at("rows") << " epoch " << epoch;
        EXPECT_TRUE(order.marks(0).empty());
      }
  }
}

TEST_F(FinetuningOrderTest, RowsThatAreLeftOutLeaveTheirShards) {
  write_rows({3, 4, 2, 1}, /*empty=*/{4, 9});
  config_.bad_rows = BadRows::kSkip;
  const auto data = open_chat_dataset(config_, shape_, {});
  EXPECT_EQ(data->num_rows(), 8);
  EXPECT_EQ(data->shard_sizes(), (std::vector<uint32_t>{3, 3, 2}));
}

TEST_F(FinetuningOrderTest, WithoutCompatTheOrderIsOneList) {
  const Json one = cases()[1];
  open(one);
  config_.compat = ChatCompat::kNone;
  const auto order = [&](const ShardSizes& sizes) {
    std::vector<uint32_t> rows(93);
    data_order({{config_}}, {sizes}, {.global_sequences = 8}).epoch(0)->read(rows);
    return rows;
  };
  EXPECT_EQ(order({50, 3, 40}), order({93}));
  config_.compat = ChatCompat::kComposer;
  EXPECT_NE(order({50, 3, 40}), order({93}));
}

/// mosaicml-streaming 0.13.0: World(machines, ranks of each, 1, 0).replicate(r).num_nodes.
TEST(DataOrderTest, MachinesOfRanksThatShareSamples) {
  struct Case {
    int64_t machines, ranks_of_node, replication, wanted;
  };
  for (const auto& [machines, ranks, replication, wanted] : {Case{1, 4, 1, 1},
                                                             {1, 4, 2, 1},
                                                             {2, 4, 1, 2},
                                                             {2, 4, 2, 1},
                                                             {2, 4, 8, 1},
                                                             {4, 8, 2, 2},
                                                             {4, 8, 4, 1},
                                                             {4, 8, 8, 1},
                                                             {4, 8, 16, 1},
                                                             {3, 2, 3, 1},
                                                             {4, 2, 4, 1}})
    EXPECT_EQ(nodes_of_data_ranks(machines * ranks / replication, machines * ranks, machines), wanted)
        << machines << " " << ranks << " " << replication;
  EXPECT_EQ(nodes_of_data_ranks(5, 5, 2), 1);
}

}  // namespace
}  // namespace tycho
