// parallel.reduce = "canonical" with device=cuda on the stand-in, whose NCCL adds in the order of ranks.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Canonical : public StandinTest {
 protected:
  void train_on(int ranks, const std::string& name, const std::string& pins) {
    const Outcome outcome =
        here("TYCHO_STANDIN_GPUS=4 tycho launch -n " + std::to_string(ranks) + " run x.lua run_dir=" + name +
             " micro_batch=1sp device=cuda max_duration=12ba eval.every=1000ba " + pins);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  /// "N tensors are equal, M differ": weights and state of the optimizer at the end.
  std::string difference(const std::string& a, const std::string& b) {
    return here("tycho ckpt diff " + a + " " + b).output;
  }
  void expect_same_bits(const std::string& a, const std::string& b) {
    EXPECT_EQ(numbers(a, "loss").size(), 12U);
    EXPECT_EQ(numbers(a, "loss"), numbers(b, "loss"));
    EXPECT_EQ(numbers(a, "grad_norm"), numbers(b, "grad_norm"));
    EXPECT_CONTAINS(difference(a, b), " tensors are equal, 0 differ");
  }
};

struct Mesh {
  const char* name;
  int ranks;
  const char* pins;
  bool also_bf16;  // whose kernels differ, but whose sums take the same ways
};
constexpr Mesh kMeshes[] = {{"replicas2", 2, "", true},
                            {"replicas4", 4, "", false},
                            {"shards2", 2, "parallel.dp_shard=2", false},
                            {"shards4", 4, "parallel.dp_shard=4", false},
                            {"both4", 4, "parallel.dp_shard=2", true}};

TEST_F(Canonical, HasTheBitsOfOneRankOnTwoAndFour) {
  for (const std::string precision : {"fp32", "bf16"}) {
    const std::string pins = "parallel.reduce=canonical clip.norm=0.05 precision=" + precision + " ";
    train_on(1, precision, pins);
    for (const Mesh& mesh : kMeshes) {
      if (precision == "bf16" && !mesh.also_bf16) continue;
      SCOPED_TRACE(precision + " " + mesh.name);
      train_on(mesh.ranks, precision + mesh.name, pins + mesh.pins);
      expect_same_bits(precision + mesh.name, precision);
    }
  }
}

TEST_F(Canonical, IsWhatTheseRunsNeed) {
  train_on(1, "one", "precision=fp32"), train_on(4, "four", "precision=fp32");
  EXPECT_EQ(difference("one", "four").find(", 0 differ"), std::string::npos)
      << "the test above could not fail";
}

TEST_F(Canonical, TrainsAsOnACpu) {
  const std::string pins = "micro_batch=1sp precision=fp32 parallel.reduce=canonical";
  ASSERT_EQ(train("cpu", "cpu", pins).code, 0);
  ASSERT_EQ(train("cuda", "cuda", pins).code, 0);
  expect_close(numbers("cuda", "loss"), numbers("cpu", "loss"), 2e-5);
  expect_close(numbers("cuda", "grad_norm"), numbers("cpu", "grad_norm"), 1e-4);
}

}  // namespace
}  // namespace tycho
