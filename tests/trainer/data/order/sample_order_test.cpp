// Batches of every rank against mosaicml-streaming's StreamingDataset and torch's DataLoader
// (tests/golden/make_order_goldens.py).
#include "trainer/data/order/sample_order.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/field_types.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::crc32_of;
using testing::expect_error;
using testing::golden;

template <class E>
E named(const Json& args, const char* key, const char* usual) {
  const std::string name = args.value(key, usual);
  for (const auto& [known, value] : enum_names(E{}))
    if (name == known) return value;
  ADD_FAILURE() << key << " " << name;
  return {};
}

std::optional<int64_t> epoch_size(const Json& args) {
  if (!args.contains("epoch_size")) return std::nullopt;
  const Json& size = args.at("epoch_size");
  return size.is_string() ? 1000 : size.get<int64_t>();  // "1k"
}

/// The world that a case describes, as its ranks see it.
RankGrid grid_of(const Json& one) {
  RankGrid grid = {one.at("world")[0], one.at("world")[1]};
  const int64_t copies = one.at("args").value("replication", 1);
  return copies == 1 ? grid : RankGrid{1, grid.num_ranks() / copies};
}

OrderSpec spec_of(const Json& one) {
  const Json& args = one.at("args");
  OrderSpec spec;
  for (const Json& stream : one.at("streams")) {
    spec.streams.push_back(stream.at("shards"));
    StreamWeight weight;
    if (stream.contains("proportion")) weight.proportion = stream.at("proportion");
    if (stream.contains("repeat")) weight.repeat = stream.at("repeat");
    if (stream.contains("choose")) weight.choose = stream.at("choose");
    spec.weights.push_back(weight);
    spec.names.push_back(fmt::format("stream {}", spec.names.size()));
  }
  spec.shuffle = args.at("shuffle");
  spec.algo = named<ShuffleAlgo>(args, "shuffle_algo", "py1e");
  spec.seed = args.at("shuffle_seed");
  spec.grid = grid_of(one);
  const bool many = spec.algo == ShuffleAlgo::kPy1s || spec.algo == ShuffleAlgo::kPy2s;
  spec.num_canonical_nodes = args.value("num_canonical_nodes", (many ? 64 : 1) * spec.grid.nodes);
  spec.block_size =
      args.value("shuffle_block_size", std::max<int64_t>(4'000'000 / spec.num_canonical_nodes, 1 << 18));
  spec.sampling = named<SamplingMethod>(args, "sampling_method", "balanced");
  spec.granularity = args.value("sampling_granularity", 1);
  spec.epoch_size = epoch_size(args);
  spec.batching = named<BatchingMethod>(args, "batching_method", "random");
  spec.global_sequences = one.at("batch").get<int64_t>() * spec.grid.num_ranks();
  return spec;
}

using Samples = std::vector<uint32_t>;

/// Batch after batch, the samples of each rank, from `first_batch` on.
std::vector<Samples> samples_of_ranks(const SampleOrder& order, const OrderSpec& spec, int64_t epoch,
                                      int64_t first_batch = 0, const OrderMarks& marks = {}) {
  const auto stream = order.epoch(epoch, marks);
  stream->skip(first_batch * spec.global_sequences);
  const auto ranks = static_cast<size_t>(spec.grid.num_ranks());
  std::vector<Samples> of_ranks(ranks);
  Samples batch(static_cast<size_t>(spec.global_sequences));
  for (int64_t b = first_batch; b < order.length() / spec.global_sequences; ++b) {
    stream->read(batch);
    for (size_t i = 0; i < batch.size(); ++i) of_ranks[i / (batch.size() / ranks)].push_back(batch[i]);
  }
  return of_ranks;
}

Json orders() { return parse_json(read_file(golden("order/orders.json")), "orders.json"); }

TEST(SampleOrderTest, EveryRankGetsWhatStreamingGivesIt) {
  size_t cases = 0;
  for (const Json& one : orders()) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const OrderSpec spec = spec_of(one);
    const SampleOrder order(spec);
    int64_t samples = 0;
    for (const StreamShare& share : order.shares()) samples += share.samples;
    EXPECT_EQ(samples, one.at("epoch_size").get<int64_t>());
    for (const auto& [epoch, expected] : one.at("epochs").items()) {
      const auto batches = expected.at("batches").get<int64_t>();
      EXPECT_EQ(order.length() / spec.global_sequences, batches) << epoch;
      const auto got = samples_of_ranks(order, spec, std::stoll(epoch));
      ASSERT_EQ(got.size(), expected.at("crc").size());
      const auto batch = one.at("batch").get<int64_t>();
      if (batches > 0) {
        EXPECT_EQ(Samples(got[0].begin(), got[0].begin() + batch), expected.at("first").get<Samples>())
            << epoch;
        EXPECT_EQ(Samples(got.back().end() - batch, got.back().end()), expected.at("last").get<Samples>())
            << epoch;
      }
      for (size_t rank = 0; rank < got.size(); ++rank)
        EXPECT_EQ(crc32_of(got[rank]), expected.at("crc")[rank].get<uint32_t>()) << epoch << " rank " << rank;
    }
    ++cases;
  }
  EXPECT_GE(cases, 60u);
}

TEST(SampleOrderTest, AnEpochCanBeginAtAnyBatch) {
  for (const Json& one : orders()) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const OrderSpec spec = spec_of(one);
    const SampleOrder order(spec);
    const int64_t batches = order.length() / spec.global_sequences;
    const auto whole = samples_of_ranks(order, spec, 1);
    for (const int64_t first : {int64_t{1}, batches / 2, batches - 1}) {
      if (first < 1 || first >= batches) continue;
      const auto rest = samples_of_ranks(order, spec, 1, first);
      for (size_t rank = 0; rank < rest.size(); ++rank) {
        const auto gone = first * static_cast<int64_t>(whole[rank].size()) / batches;
        EXPECT_EQ(rest[rank], Samples(whole[rank].begin() + gone, whole[rank].end())) << first;
      }
    }
  }
}

TEST(SampleOrderTest, MarksDoNotChangeTheOrder) {
  size_t with_marks = 0;
  for (const Json& one : orders()) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    OrderSpec spec = spec_of(one);
    const int64_t batches = SampleOrder(spec).length() / spec.global_sequences;
    for (const int64_t between : {1, 40}) {
      spec.between_marks = between;
      const SampleOrder order(spec);
      const OrderMarks marks = order.marks(1);
      with_marks += marks.empty() ? 0 : 1;
      if (between == 1) {
        EXPECT_EQ(marks.empty(), !spec.shuffle || spec.algo == ShuffleAlgo::kNaive);
      }
      EXPECT_EQ(order.marks(1, marks), marks);
      for (const int64_t first : {int64_t{0}, int64_t{1}, batches / 2, batches - 1})
        if (first >= 0 && first < batches) {
          EXPECT_EQ(samples_of_ranks(order, spec, 1, first, marks), samples_of_ranks(order, spec, 1, first));
        }
      if (batches > 0) {
        EXPECT_EQ(samples_of_ranks(order, spec, 2, 0, marks), samples_of_ranks(order, spec, 2))
            << "marks of another epoch";
      }
    }
  }
  EXPECT_GE(with_marks, 100u);
}

/// Steps of ranks on any number of machines hold the same samples, as long as the canonical nodes stay.
TEST(SampleOrderTest, TheWorldDoesNotChangeWhatAStepHolds) {
  OrderSpec spec;
  spec.streams = {ShardSizes(16, 100)};
  spec.weights.resize(1);
  spec.names = {"data"};
  spec.algo = ShuffleAlgo::kPy1e;
  spec.num_canonical_nodes = 4;
  spec.block_size = 500;
  spec.global_sequences = 32;
  std::vector<Samples> expected;
  for (const RankGrid grid :
       {RankGrid{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {8, 1}, {2, 8}}) {
    spec.grid = grid;
    const auto stream = SampleOrder(spec).epoch(3);
    Samples batch(32);
    for (size_t b = 0; b < 50; ++b) {
      stream->read(batch);
      std::sort(batch.begin(), batch.end());
      if (expected.size() <= b) expected.push_back(batch);
      EXPECT_EQ(batch, expected[b]) << grid.nodes << " x " << grid.ranks_per_node;
    }
  }
}

class OrderProblems : public ::testing::Test {
 protected:
  void expect_problem(std::initializer_list<std::string_view> parts, ExitCode code = ExitCode::kUnusable) {
    expect_error(code, parts, [&] { SampleOrder{spec_}; });
  }
  OrderSpec spec_{.streams = {{50, 50}, {40}},
                  .weights = {{.proportion = 0.9}, {.proportion = 0.1}},
                  .names = {"web", "code"},
                  .global_sequences = 8};
};

TEST_F(OrderProblems, MoreCanonicalNodesThanSamples) {
  spec_.num_canonical_nodes = 141;
  expect_problem({"140 samples", "num_canonical_nodes = 141", "smaller"});
}

TEST_F(OrderProblems, AStreamWithoutAPlaceInABatch) {
  spec_.batching = BatchingMethod::kStratified;
  spec_.weights = {{.proportion = 0.99}, {.proportion = 0.01}};
  expect_problem({"8 sequences has none of stream code", "0.01", "stratified"});
  spec_.batching = BatchingMethod::kPerStream;
  expect_problem({"stream code has", "too few for a batch of its own", "per_stream"});
  spec_.weights[1].proportion = 0;
  expect_problem({"stream code has 0 samples"});
}

TEST_F(OrderProblems, BlocksThatAreTooSmall) {
  spec_.algo = ShuffleAlgo::kPy1br;
  spec_.block_size = 1;
  expect_problem({"shuffle_block_size = 1"});
  spec_.algo = ShuffleAlgo::kPy1e;
  spec_.block_size = 5;
  spec_.batching = BatchingMethod::kPerStream;
  expect_problem({"shuffle_block_size = 5", "0 samples", "stream code"});
}

TEST_F(OrderProblems, MachinesThatDoNotDivide) {
  spec_.grid = {3, 1};
  spec_.global_sequences = 9;
  spec_.num_canonical_nodes = 2;
  expect_problem({"num_canonical_nodes = 2 and 3 machines"}, ExitCode::kTopology);
  spec_.num_canonical_nodes = 1;
  spec_.batching = BatchingMethod::kDevicePerStream;
  expect_problem({"3 machines", "the smaller number"}, ExitCode::kTopology);
}

TEST_F(OrderProblems, EpochsThatDoNotFitIntoIds) {
  spec_.epoch_size = int64_t{1} << 33;
  expect_problem({"at most 2^32-1 samples", "8589934592"});
}

}  // namespace
}  // namespace tycho
