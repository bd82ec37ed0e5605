// Memory of a GPU: what a run takes, beside its plan.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Memory : public StandinTest {
 protected:
  /// Runs on a GPU of so many multiprocessors. Returns the measured peak.
  double peak(int num_sms) const {
    const std::string name = "run" + std::to_string(num_sms);
    const Outcome outcome = train(name, "cuda", "precision=bf16 micro_batch=1sp",
                                  "export TYCHO_STANDIN_SMS=" + std::to_string(num_sms) + ";");
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return numbers(name, "memory_bytes").rbegin()->second;
  }
};

// Flash attention adds dq in a fixed order in ceil(multiprocessors / (sequences x heads)) sums; an H100 has
// 132.
TEST_F(Memory, ThePeakOfARunIsWithinItsPlan) {
  const double certain = certain_bytes("precision=bf16 micro_batch=1sp");
  const double small = peak(4), large = peak(132);
  EXPECT_LE(large, certain);
  EXPECT_GT(large, certain / 2);
  EXPECT_GT(large, small);
}

}  // namespace
}  // namespace tycho
