// Two hundred steps against a loop in PyTorch: Hugging Face's models, Composer's and torch's optimizers and
// schedules.
#include <cmath>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"

namespace tycho {
namespace {

const std::string kGolden = TYCHO_GOLDEN_DIR;

const Json& curves() {
  static const Json json = parse_json(read_file(kGolden + "/optim/curves.json"), "curves.json");
  return json;
}

/// The recipe of tests/golden/training_curves.py.
class TrainingCurves : public RunTest {
 protected:
  void SetUp() override {
    const std::string dir = dir_ / "data/train";
    std::filesystem::create_directories(dir);
    MdsWriter writer(real_files(), dir, {.columns = {{"tokens", "ndarray:int32"}}});
    for (const Json& row : curves()["tokens"]) {
      const auto tokens = row.get<std::vector<int32_t>>();
      writer.write({encode_mds_array(tokens.data(), static_cast<int64_t>(tokens.size()), 4)});
    }
    writer.finish();
    config_.seq_len = 20;
    config_.global_batch = {8, DurationUnit::kSample};
    config_.micro_batch = Duration{4, DurationUnit::kSample};
    config_.max_duration = {200, DurationUnit::kBatch};
    config_.ckpt.every = {200, DurationUnit::kBatch};
    std::get<MdsConfig>(config_.train_data.value).shuffle = false;
    config_.clip.norm = 1.0;
    config_.threads = 1;  // models this small have no work for two
  }

  void start_from(const std::string& model) {
    const std::string folder = kGolden + "/hf/" + model;
    config_.model = read_hf_config(read_hf_config_file(folder), folder).model;
    std::visit([&](auto& family) { family.weights = folder; }, config_.model.value);
  }

  /// Relative distances of losses to those of a golden curve.
  struct Distance {
    double largest = 0, rms = 0;
  };
  static Distance distance_between(const std::map<int64_t, double>& losses,
                                   const std::vector<double>& wanted) {
    EXPECT_EQ(losses.size(), wanted.size());
    Distance distance;
    for (const auto& [step, loss] : losses) {
      const double apart = std::abs(loss / wanted[static_cast<size_t>(step - 1)] - 1);
      distance.largest = std::max(distance.largest, apart);
      distance.rms += apart * apart / static_cast<double>(losses.size());
    }
    distance.rms = std::sqrt(distance.rms);
    return distance;
  }
  Distance distance_of_run(const std::vector<double>& wanted) {
    std::filesystem::remove_all(run_dir());
    EXPECT_EQ(run(), 0);
    return distance_between(losses(), wanted);
  }

  /// fp32 follows the curve in double; bf16 strays from it as PyTorch's autocast does. How far the worst step
  /// of 200 strays in bf16 depends on the order of sums, and so on the processor; the rms hardly does.
  void expect_same_curves(const std::string& model) {
    const auto exact = curves()[model]["fp64"].get<std::vector<double>>();
    EXPECT_LT(distance_of_run(exact).largest, 1e-5);
    std::map<int64_t, double> autocast;
    for (const double loss : curves()[model]["bf16"].get<std::vector<double>>())
      autocast[static_cast<int64_t>(autocast.size()) + 1] = loss;
    config_.precision = Precision::kBf16;
    const Distance ours = distance_of_run(exact), theirs = distance_between(autocast, exact);
    EXPECT_LT(ours.rms, 2 * theirs.rms);
    EXPECT_LT(ours.largest, 4 * theirs.largest);
  }
};

TEST_F(TrainingCurves, OfGpt2AreThoseOfTorchsAdamWAndTorchTitansSchedule) {
  start_from("gpt2");
  AdamWConfig adamw;
  adamw.lr = 1e-3, adamw.betas = {0.9, 0.95}, adamw.weight_decay = 0.1, adamw.decay_mask = DecayMask::kAll;
  LinearConfig linear;
  linear.t_warmup = {20, DurationUnit::kBatch}, linear.alpha_f = 0;
  config_.optimizer.value = adamw;
  config_.scheduler.value = linear;
  expect_same_curves("gpt2");
}

TEST_F(TrainingCurves, OfMptWithAlibiAreThoseOfComposer) {
  start_from("mpt");
  std::get<MptConfig>(config_.model.value).clip_qkv.reset();  // as the script
  DecoupledAdamWConfig adamw;
  adamw.lr = 1e-3, adamw.betas = {0.9, 0.95}, adamw.weight_decay = 1e-4, adamw.decay_mask = DecayMask::kAll;
  CosineConfig cosine;
  cosine.t_warmup = {20, DurationUnit::kBatch}, cosine.alpha_f = 0.1;
  cosine.compat = ScheduleCompat::kComposer;
  config_.optimizer.value = adamw;
  config_.scheduler.value = cosine;
  expect_same_curves("mpt");
}

TEST_F(TrainingCurves, OfLlamaAreThoseOfTorchsAdamW) {
  start_from("llama");
  AdamWConfig adamw;
  adamw.lr = 2e-4, adamw.betas = {0.9, 0.95}, adamw.weight_decay = 0.1, adamw.decay_mask = DecayMask::kAll;
  config_.optimizer.value = adamw;
  config_.scheduler.value = ConstantConfig{};
  expect_same_curves("llama");
}

}  // namespace
}  // namespace tycho
