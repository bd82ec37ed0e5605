// Every verb along every axis gives the right numbers and a line; what makes no sense is refused.
#include "trainer/run/comm_bench.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/trainer/comm/rank_threads.h"

namespace tycho {
namespace {

const std::atomic<int> kNoStop = 0;

CommBenchRequest small(const std::string& mesh = "") {
  CommBenchRequest request;
  request.min_bytes = 8, request.max_bytes = 4096, request.factor = 8;
  request.iterations = 2, request.warmup = 1;
  request.mesh = mesh;
  return request;
}

/// What rank 0 sees.
std::vector<CommTiming> timings_of(int num_ranks, const CommBenchRequest& request) {
  std::vector<CommTiming> timings;
  const auto ended = on_ranks(num_ranks, [&](Communicator& world) {
    EXPECT_EQ(bench_comm(request, world, at::kCPU, kNoStop,
                         [&](const CommTiming& timing) { timings.push_back(timing); }),
              0);
  });
  for (const Ended& one : ended) EXPECT_EQ(one.what, "");
  return timings;
}

TEST(CommBench, EveryVerbIsRightAtEverySize) {
  for (const int num_ranks : {1, 2, 3, 4}) {
    std::map<std::string, int> lines;
    for (const CommTiming& timing : timings_of(num_ranks, small())) {
      ++lines[timing.op];
      EXPECT_EQ(timing.axis, "all");
      EXPECT_EQ(timing.group_size, num_ranks);
      EXPECT_TRUE(timing.out_of_place || timing.in_place) << timing.op;
      for (const auto& form : {timing.out_of_place, timing.in_place}) {
        if (!form) continue;
        EXPECT_EQ(form->num_wrong, 0) << timing.op << " of " << timing.num_bytes;
        EXPECT_GT(form->seconds, 0);
      }
    }
    EXPECT_EQ(lines["all_reduce"], 4);                      // 8, 64, 512, 4096
    EXPECT_EQ(lines["all_gather"], num_ranks > 2 ? 3 : 4);  // 8 bytes are no element for each of 3
    EXPECT_EQ(lines["barrier"], 1);
    EXPECT_EQ(lines.size(), comm_verbs().size());
  }
}

/// A world of one that gets sums of floats wrong by one in the last element.
class WrongSums final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(Tensor& x) override {
    if (x.scalar_type() == at::kFloat) x.narrow(0, x.numel() - 1, 1).add_(1);
  }
  void all_gather(Tensor& out, const Tensor& in) override { out.copy_(in); }
  void reduce_scatter(Tensor& out, const Tensor& in) override { out.copy_(in); }
  void broadcast(Tensor&, int) override {}
  void barrier() override {}
  void send(const Tensor&, int) override {}
  void recv(Tensor&, int) override {}
  std::unique_ptr<Communicator> split(int, int) override { return make_world_of_one(); }
};

TEST(CommBench, CountsWrongElements) {
  WrongSums world;
  CommBenchRequest request = small();
  request.collectives = {"all_reduce", "broadcast"};
  std::map<std::string, int64_t> wrong;
  bench_comm(request, world, at::kCPU, kNoStop,
             [&](const CommTiming& timing) { wrong[timing.op] += timing.in_place->num_wrong; });
  EXPECT_EQ(wrong["all_reduce"], 4);  // one at each size
  EXPECT_EQ(wrong["broadcast"], 0);
}

TEST(CommBench, MeasuresAlongEachAxis) {
  CommBenchRequest request = small("dp_replicate=2,tp=2");
  request.collectives = {"all_reduce"};
  request.min_bytes = request.max_bytes = 64;
  const std::vector<CommTiming> timings = timings_of(4, request);
  ASSERT_EQ(timings.size(), 3u);
  EXPECT_EQ(timings[0].axis, "dp_replicate");
  EXPECT_EQ(timings[0].group_size, 2);
  EXPECT_EQ(timings[1].axis, "tp");
  EXPECT_EQ(timings[2].axis, "all");
  EXPECT_EQ(timings[2].group_size, 4);
  EXPECT_DOUBLE_EQ(timings[2].bus_factor, 1.5);
}

TEST(CommBench, RefusesWhatMakesNoSense) {
  EXPECT_NE(error_of([] {
              parse_mesh("dp_shard=3", 2);
            }).find("the mesh dp_shard 3 has 3 ranks, and 2 were started"),
            std::string::npos);
  for (const char* wrong : {"dp=2", "dp_shard", "dp_shard=0", "dp_shard=two", "dp_shard=-2"})
    EXPECT_NE(error_of([&] { parse_mesh(wrong, 2); }).find("a mesh is written as"), std::string::npos)
        << wrong;
  const auto refusal = [](const CommBenchRequest& request) {
    return error_of([&] { bench_comm(request, *make_world_of_one(), at::kCPU, kNoStop, {}); });
  };
  CommBenchRequest request = small();
  request.collectives = {"all_reduce", "allgather"};
  EXPECT_NE(refusal(request).find("got allgather"), std::string::npos);
  request = small();
  request.max_bytes = 4;
  EXPECT_NE(refusal(request).find("the largest last"), std::string::npos);
  request = small();
  request.factor = 1;
  EXPECT_NE(refusal(request).find("a factor of at least 2"), std::string::npos);
}

TEST(CommBench, ASignalEndsItBetweenLines) {
  std::atomic<int> stop = 0;
  const auto world = make_world_of_one();
  int lines = 0;
  EXPECT_EQ(
      bench_comm(small(), *world, at::kCPU, stop, [&](const CommTiming&) { stop = ++lines == 2 ? 15 : 0; }),
      15);
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace tycho
