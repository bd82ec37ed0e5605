// The GPU that a plan is for: what depends on it besides its memory.
#include "trainer/plan/planned_gpu.h"

#include <gtest/gtest.h>

#include "tests/trainer/plan/planned_llama.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(PlannedGpu, IsTheOneAtHandOrTheNamedOne) {
  TrainConfig config = llama_8b();
  config.precision = Precision::kBf16, config.seq_len = 8192, config.micro_batch = Duration::parse("1sp");
  const auto attention = [&](const PlanDevices& devices) {
    return item(make_plan(config, devices), "attention");
  };
  EXPECT_NE(attention({.gpu = "H200"}).note.find(", 5 copies of dq"), std::string::npos);  // ceil(132 / 32)
  EXPECT_NE(attention({.gpu = "A100"}).note.find(", 4 copies of dq"), std::string::npos);  // ceil(108 / 32)
  config.device = DeviceKind::kCuda;
  EXPECT_NE(attention({.shape = {.num_sms = 64}}).note.find(", 2 copies of dq"), std::string::npos);
}

TEST(PlannedGpu, RefusesHeadsForWhichItHasNoGradient) {
  TrainConfig config = llama_8b();
  config.precision = Precision::kBf16;
  llama(config).width = 3584, llama(config).heads = 16;  // of 224
  EXPECT_NO_THROW(make_plan(config, {.gpu = "H100 HBM3"}));
  try {
    make_plan(config, {.gpu = "L40S"});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("got a width of 224: with compute capability 8.9 at most 192"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tycho
