// Runs with a moving average of their weights: what it is, on every mesh, through resumes, evaluated and left
// out again.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/trainer/huggingface/convert_fixture.h"
#include "tests/trainer/run/one_callback.h"
#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/huggingface/hf_export.h"
#include "trainer/huggingface/peft_export.h"
#include "trainer/plan/plan.h"
#include "trainer/run/evaluate_checkpoint.h"

namespace tycho {
namespace {

class EmaRun : public ShardedRun {
 protected:
  EmaRun() {
    config_.ema.half_life = Duration::parse("5ba");
    config_.ckpt.keep = 0;
  }
  void evaluate_every(const char* every) {
    config_.eval_data = {{"held", config_.train_data}};
    config_.eval.every = Duration::parse(every);
    config_.eval.batches = 4;
  }
  void expect_resumes(const TestMesh& mesh) {
    config_.ckpt.every = {4, DurationUnit::kBatch};
    train_in("whole", mesh);
    const auto whole = newest_tensors();
    EXPECT_GT(num_averages(whole), 0);
    config_.run_dir = dir_ / "parts";
    std::filesystem::remove_all(run_dir());
    for (const char* until : {"7ba", "11ba", ""}) train(mesh, until);
    EXPECT_TRUE(newest_tensors() == whole) << mesh.name();
  }
  /// Of the run's checkpoint after so many steps.
  std::map<std::string, std::string> at_step(int64_t step) const {
    for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
      if (info.step == step) return tensors_of(info.path);
    ADD_FAILURE() << "no checkpoint of step " << step;
    return {};
  }
  static int64_t num_averages(const std::map<std::string, std::string>& tensors) {
    return std::count_if(tensors.begin(), tensors.end(),
                         [](const auto& one) { return one.first.starts_with("ema."); });
  }
  /// Without averages.
  static std::map<std::string, std::string> trained(std::map<std::string, std::string> tensors) {
    std::erase_if(tensors, [](const auto& one) { return one.first.starts_with("ema."); });
    return tensors;
  }
  std::vector<std::string> texts(const std::string& kind) const {
    std::vector<std::string> found;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == kind) found.push_back(event.at("text"));
    return found;
  }
  double loss_of(const std::string& path, CheckpointWeights weights) {
    const TrainedSource reader(path, at::kCPU, weights == CheckpointWeights::kAverage);
    return evaluate_checkpoint(reader, std::nullopt, std::nullopt, at::kCPU, stop_)->at("held").loss;
  }
  /// Loss of the evaluation at the end, and what it says of the weights.
  Json last_evaluation() const {
    Json last;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "eval") last = event;
    return last;
  }
};

// The oracle knows nothing of the trainer: it averages the weights that every step's checkpoint holds.
TEST_F(EmaRun, IsTheAverageOfTheWeightsOfItsSteps) {
  config_.ckpt.every = {1, DurationUnit::kBatch};
  config_.ema.start = Duration::parse("5ba");
  config_.ema.every = Duration::parse("2ba");
  train(kOneRank);
  const double smoothing = std::exp(-std::log(2.0) * 2 / 5);  // Composer's
  std::map<std::string, Tensor> oracle;
  for (int64_t step = 1; step <= 20; ++step) {
    const auto tensors = at_step(step);
    if (step < 6) {
      EXPECT_EQ(num_averages(tensors), 0) << "step " << step;
      continue;
    }
    for (const auto& [name, bytes] : tensors) {
      if (name.starts_with("ema.") || name.starts_with("optimizer.")) continue;
      if (step == 6)
        oracle[name] = floats(bytes);
      else if (step % 2 == 0)
        oracle[name] = oracle[name] * smoothing + floats(bytes) * (1 - smoothing);
      const Tensor given = floats(tensors.at("ema." + name));
      EXPECT_LT((given - oracle[name]).norm().item<double>(), 1e-6 * oracle[name].norm().item<double>())
          << name << " at step " << step;
    }
  }
  EXPECT_EQ(num_averages(at_step(20)), static_cast<int64_t>(oracle.size()));
}

TEST_F(EmaRun, OfEveryMeshIsThatOfOneRank) {
  const TestMesh pipeline = {.pp = 2}, replicas = {2, 1}, context = {.cp = 2};
  expect_as_one_rank("ema", {kTwo, replicas, kTwoByTwo, kTp, context, pipeline});
  config_.max_duration = {3, DurationUnit::kBatch};
  config_.ckpt.every = {3, DurationUnit::kBatch};
  expect_moves("ema", {kOneRank, kTwo, kTp, pipeline});
}

TEST_F(EmaRun, ResumesToTheBit) {
  evaluate_every("3ba");
  for (const TestMesh& mesh : {kOneRank, kTwo}) expect_resumes(mesh);
}

TEST_F(EmaRun, OfGemmaAndPhiWithFrozenPartsResumesToTheBit) {
  Gemma3Config gemma;
  gemma.width = 32, gemma.layers = 2, gemma.heads = 4, gemma.kv_heads = 2, gemma.head_width = 8;
  gemma.ffn_width = 48, gemma.vocab_size = 64, gemma.sliding_window = 5;
  gemma.layer_types = {LayerType::kSliding, LayerType::kFull};
  config_.model.value = gemma;
  config_.param_groups = {{.match = "post_.*layernorm", .freeze = true}};
  expect_resumes(kTp);
  Phi3Config phi;
  phi.width = 32, phi.layers = 2, phi.heads = 4, phi.ffn_width = 48, phi.vocab_size = 64;
  phi.partial_rotary_factor = 0.5, phi.resid_dropout = 0.1;
  config_.model.value = phi;
  config_.param_groups = {{.match = "qkv_proj", .freeze = true}};
  expect_resumes(kTwo);
}

// The signal comes while the average is in the place of the weights.
TEST_F(EmaRun, AnEvaluationThatIsStoppedLeavesTheTrainedWeights) {
  evaluate_every("3ba");
  for (const TestMesh& mesh : {kOneRank, kTwo}) {
    train_in("whole", mesh);
    const auto whole = newest_tensors();
    OneCallback stop({Event::kEvalStart}, [&](const EventInfo& info, CallbackPort&, Json&) {
      if (info.metrics.step == 6) stop_ = SIGTERM;
    });
    callbacks_ = &stop;
    config_.run_dir = dir_ / "stopped";
    std::filesystem::remove_all(run_dir());
    expect_all_well(on_mesh(mesh, [](TrainingSession& session) { EXPECT_EQ(session.fit(), SIGTERM); }));
    EXPECT_EQ(find_checkpoint(run_dir()).step, 6);
    callbacks_ = nullptr;
    stop_ = 0;
    train(mesh);
    EXPECT_TRUE(newest_tensors() == whole) << mesh.name();
  }
}

TEST_F(EmaRun, IsEvaluatedWhileTrainingGoesOnFromTheTrainedWeights) {
  const TestMesh replicas = {2, 1};
  struct Case {
    Precision precision;
    MasterWeights master;
    TestMesh mesh;
  };
  for (const auto& [precision, master, mesh] : {Case{Precision::kFp32, MasterWeights::kFp32, kOneRank},
                                                {Precision::kFp32, MasterWeights::kFp32, kTwo},
                                                {Precision::kFp32, MasterWeights::kFp32, replicas},
                                                {Precision::kBf16, MasterWeights::kFp32, kTwo},
                                                {Precision::kBf16, MasterWeights::kNone, kTwo},
                                                {Precision::kBf16, MasterWeights::kStochastic, kOneRank}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(precision), static_cast<int>(master), mesh.name()));
    config_.precision = precision, config_.master_weights = master;
    config_.eval_data.clear(), config_.eval = {};
    train_in("not-evaluated", mesh);
    const auto wanted = newest_tensors();
    evaluate_every("3ba");
    train_in("evaluated", mesh);
    EXPECT_TRUE(newest_tensors() == wanted) << "evaluation changed the training";
    const Json last = last_evaluation();
    EXPECT_EQ(last.at("facts").value("weights", ""), "ema");
    EXPECT_NE(last.at("text").get<std::string>().find("evaluated the average of the weights on held: loss"),
              std::string::npos)
        << last.at("text");
    const double loss = last.at("facts").at("loss");
    const double tolerance = precision == Precision::kFp32 ? 1e-6 : 1e-3;
    EXPECT_NEAR(loss, loss_of(run_dir(), CheckpointWeights::kAverage), tolerance);
    EXPECT_GT(std::abs(loss - loss_of(run_dir(), CheckpointWeights::kTrained)), 10 * tolerance);
    config_.ema.evaluate = false;
    train_in("trained", mesh);
    EXPECT_NEAR(last_evaluation().at("facts").at("loss"), loss_of(run_dir(), CheckpointWeights::kTrained),
                tolerance);
    EXPECT_FALSE(last_evaluation().at("facts").contains("weights"));
    config_.ema.evaluate = true;
  }
}

TEST_F(EmaRun, TrainsAsWithoutIt) {
  train_in("with", kTwo);
  const auto with = trained(newest_tensors());
  config_.ema = {};
  train_in("without", kTwo);
  EXPECT_TRUE(newest_tensors() == with);
}

TEST_F(EmaRun, SkippedStepsDoNotMoveIt) {
  config_.guard.action = GuardAction::kSkip;
  config_.guard.max_grad_norm = 1e-12;
  config_.guard.max_skips = 100;
  train(kOneRank);
  EXPECT_EQ(num_averages(newest_tensors()), 0) << "no step was an update";
}

TEST_F(EmaRun, CanBeginAndEndAtAResume) {
  config_.ema = {};
  train(kTwo, "6ba");
  EXPECT_EQ(num_averages(newest_tensors()), 0);
  config_.ema.decay = 0.9;
  train(kTwo, "12ba");
  EXPECT_GT(num_averages(newest_tensors()), 0);
  const auto has = [&](const std::string& text) {
    for (const std::string& warning : texts("warning"))
      if (warning.find(text) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(has("ema.decay ")) << "the table of what differs";
  EXPECT_TRUE(has("the checkpoint keeps no average of the weights (ema): it begins with the first step"));
  EXPECT_FALSE(has("checkpoints from here on have none"));
  config_.ema = {};
  train(kTwo);
  EXPECT_EQ(num_averages(newest_tensors()), 0);
  EXPECT_TRUE(
      has("keeps an average of the weights (ema), but the recipe has no ema.half_life, ema.decay "
          "or eval_weights: checkpoints from here on have none"));
}

TEST_F(EmaRun, IsOfTheAdaptersAlone) {
  config_.ema = {};
  use_adapters({.rank = 2});
  config_.ema.half_life = Duration::parse("5ba");
  evaluate_every("20ba");
  train_in("adapters", kTwo);
  const auto tensors = newest_tensors();
  int64_t num_weights = 0;
  for (const auto& [name, bytes] : tensors) {
    if (name.starts_with("optimizer.") || name.starts_with("ema.")) continue;
    EXPECT_NE(name.find("lora_"), std::string::npos) << name;
    EXPECT_TRUE(tensors.contains("ema." + name)) << name;
    ++num_weights;
  }
  EXPECT_EQ(num_averages(tensors), num_weights);
  EXPECT_NEAR(last_evaluation().at("facts").at("loss"), loss_of(run_dir(), CheckpointWeights::kAverage),
              1e-6);
}

// The oracle multiplies the tensors of the checkpoint.
TEST_F(EmaRun, OfAdaptersIsExportedAloneAndMerged) {
  config_.ema = {};
  use_adapters({.rank = 2, .alpha = 5});
  config_.ema.half_life = Duration::parse("5ba");
  train_in("adapters", kTwo);
  const auto tensors = newest_tensors(), base = tensors_of(dir_ / "base");
  const CheckpointReader averaged(find_checkpoint(run_dir()), CheckpointWeights::kAverage),
      trained(find_checkpoint(run_dir()));

  export_adapters(real_files(), averaged, dir_ / "alone");
  const auto alone = tensors_of_folder(dir_ / "alone");
  const std::string prefix = "base_model.model.";
  EXPECT_EQ(std::ssize(alone), num_averages(tensors));
  for (const auto& [name, bytes] : alone) {
    ASSERT_TRUE(name.starts_with(prefix)) << name;
    const std::string param = name.substr(prefix.size());
    EXPECT_TRUE(bytes == tensors.at("ema." + param)) << name;
    EXPECT_TRUE(bytes != tensors.at(param)) << name;
  }

  const auto merge_of = [&](const CheckpointReader& reader, const std::string& folder) {
    export_hf(real_files(), reader, folder, {.dtype = "fp32", .merge = true});
    return tensors_of_folder(folder);
  };
  const auto merged = merge_of(averaged, dir_ / "merged"), of_trained = merge_of(trained, dir_ / "trained");
  int num_adapted = 0;
  for (const auto& [name, bytes] : merged) {
    const std::string layer = "ema." + name.substr(0, name.rfind('.'));
    const auto a = tensors.find(layer + ".lora_A.weight"), b = tensors.find(layer + ".lora_B.weight");
    if (a == tensors.end()) {
      EXPECT_TRUE(bytes == base.at(name)) << name;
      continue;
    }
    const Tensor product =
        at::matmul(floats(b->second).view({-1, 2}), floats(a->second).view({2, -1})).flatten();
    const Tensor wanted = (floats(base.at(name)) + 2.5 * product).to(at::kFloat);
    EXPECT_TRUE(at::allclose(floats(bytes), wanted.to(at::kDouble), 1e-6, 1e-9)) << name;
    EXPECT_FALSE(at::allclose(floats(of_trained.at(name)), wanted.to(at::kDouble), 1e-6, 1e-9)) << name;
    ++num_adapted;
  }
  EXPECT_EQ(2 * num_adapted, num_averages(tensors));
}

TEST_F(EmaRun, LeavesFrozenWeightsOut) {
  config_.param_groups = {{.match = "embed", .freeze = true}};
  evaluate_every("20ba");
  train(kTwo);
  const auto tensors = newest_tensors();
  EXPECT_FALSE(tensors.contains("ema.model.embed_tokens.weight"));
  EXPECT_TRUE(tensors.contains("ema.model.layers.0.self_attn.q_proj.weight"));
  EXPECT_NEAR(last_evaluation().at("facts").at("loss"), loss_of(run_dir(), CheckpointWeights::kAverage),
              1e-6);
}

TEST_F(EmaRun, ThatIsNotThereCannotBeRead) {
  config_.ema = {};
  config_.max_duration = {2, DurationUnit::kBatch};
  train(kOneRank);
  try {
    CheckpointReader(find_checkpoint(run_dir()), CheckpointWeights::kAverage);
    ADD_FAILURE() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what())
                  .find("keeps no average of the weights: expected a checkpoint of a run "
                        "with ema.half_life or ema.decay"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(EmaRun, OfAnotherShapeIsNamedByWhoeverReadsIt) {
  evaluate_every("4ba");
  config_.max_duration = {4, DurationUnit::kBatch};
  train(kOneRank);
  const std::string norm = "model.norm.weight";
  const CheckpointInfo whole = find_checkpoint(run_dir());
  const auto tensors = tensors_of(whole.path);
  std::vector<TensorBytes> changed;
  for (const std::string& name : CheckpointReader(whole).names()) {
    TensorBytes tensor = CheckpointReader(whole).describe(name);
    tensor.data = tensors.at(name).data();
    if (name == "ema." + norm) tensor.shape = {2, 16};
    changed.push_back(tensor);
  }
  const std::string path = CheckpointStore(real_files(), dir_ / "changed", 0, 1)
                               .save({.step = 4,
                                      .train_state = whole.manifest.at("train_state"),
                                      .recipe = whole.manifest.at("recipe")},
                                     changed)
                               .path;
  const std::string misfit = "ema.model.norm.weight: expected F32 [32], got F32 [2, 16]";
  expect_contains(message_of(ExitCode::kUnusable, [&] { loss_of(path, CheckpointWeights::kAverage); }),
                  misfit);
  EXPECT_TRUE(std::isfinite(loss_of(path, CheckpointWeights::kTrained)));
  const CheckpointReader averaged(find_checkpoint(path), CheckpointWeights::kAverage);
  expect_contains(message_of(ExitCode::kUnusable,
                             [&] { export_hf(real_files(), averaged, dir_ / "out", {.dtype = "fp32"}); }),
                  "ema.model.norm.weight: expected [32], got F32 [2, 16]");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out"));
  config_.resume = path;
  config_.run_dir = dir_ / "resumed";
  expect_contains(message_of(ExitCode::kUnusable, [&] { run(); }),
                  "does not fit the recipe's ema:\n  " + misfit + "\nUse the recipe");
}

TEST_F(EmaRun, OfOtherParametersDoesNotFit) {
  config_.optimizer.value = SgdConfig{.lr = 0.1};  // without state: the average alone does not fit
  config_.param_groups = {{.match = "embed", .freeze = true}};
  train(kOneRank, "4ba");
  config_.param_groups.clear();
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what())
                .find("does not fit the recipe's ema:\n  ema.model.embed_tokens.weight is "
                      "missing"),
            std::string::npos)
      << error.what();
}

TEST_F(EmaRun, TakesTheMemoryThatThePlanSays) {
  evaluate_every("20ba");
  for (const MasterWeights master : {MasterWeights::kFp32, MasterWeights::kStochastic})
    for (const TestMesh& mesh : {kOneRank, kTwo}) {
      config_.precision = Precision::kBf16, config_.master_weights = master;
      mesh.set(config_.parallel);
      config_.ema = {};
      const int64_t plain = trained_arena_bytes(mesh);
      const Plan plan = plan_memory(config_, {.num_ranks = mesh.num_ranks()});
      config_.ema.decay = 0.9;
      const int64_t more = trained_arena_bytes(mesh) - plain;
      const Plan with = plan_memory(config_, {.num_ranks = mesh.num_ranks()});
      const auto planned = static_cast<double>((with.memory_bytes - plan.memory_bytes) * mesh.num_ranks());
      EXPECT_LE(static_cast<double>(more), planned) << mesh.name();  // the plan counts whole pages
      EXPECT_GE(static_cast<double>(more), 0.8 * planned) << mesh.name();
    }
}

}  // namespace
}  // namespace tycho
