// A run that is open: its steps are those of a whole run, and looking changes nothing.
#include "trainer/run/open_session.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <string>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/device/device.h"
#include "trainer/run/enough_memory.h"

namespace tycho {
namespace {

class OpenSessionTest : public RunTest {
 protected:
  OpenSessionTest() { write_data(64, 16, 64); }
  std::unique_ptr<TrainingSession> open() { return open_session(request(), nullptr, stop_); }
  static ExitCode code_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::kOk;
  }
};

TEST_F(OpenSessionTest, StepsAreThoseOfAWholeRun) {
  run();
  const std::map<int64_t, double> wanted = losses();
  config_.run_dir = dir_ / "stepped";
  const auto session = open();
  std::vector<StepMetrics> got = session->step(5);
  session->peek(9);
  session->logits({1, 2, 3}, false);
  for (size_t i = 0; i < session->params().size(); ++i) session->weight(static_cast<int64_t>(i))->stats();
  for (const StepMetrics& one : session->step(99)) got.push_back(one);
  ASSERT_EQ(got.size(), 12u);
  for (const StepMetrics& one : got) {
    EXPECT_EQ(one.loss, wanted.at(one.step)) << one.step;
    EXPECT_EQ(one.lr, session->lr_at(one.step - 1));
  }
}

TEST_F(OpenSessionTest, ParametersAndGradientsAreTheModels) {
  const auto session = open();
  EXPECT_EQ(session->facts().num_layers, 2);
  EXPECT_EQ(session->params().front().name, "model.embed_tokens.weight");
  EXPECT_EQ(session->params().front().layer, -1);
  const std::vector<StepMetrics> done = session->step(3);
  double squares = 0;
  int64_t numel = 0;
  for (size_t i = 0; i < session->params().size(); ++i) {
    const auto grad = session->grad(static_cast<int64_t>(i));
    EXPECT_EQ(grad->shape(), session->params()[i].shape);
    squares += grad->stats().norm * grad->stats().norm;
    numel += grad->numel();
  }
  EXPECT_NEAR(std::sqrt(squares), done.back().grad_norm, 1e-4 * done.back().grad_norm);
  EXPECT_EQ(numel, session->facts().run.num_params);
  const OptimizerState optimizer = session->optimizer();
  EXPECT_EQ(optimizer.config.at("kind"), "adamw");
  size_t in_groups = 0;
  for (const OptimizerGroup& group : optimizer.groups) in_groups += group.params.size();
  EXPECT_EQ(in_groups, session->params().size());
}

TEST_F(OpenSessionTest, ViewsChangeWithTheModelAndCopiesDoNot) {
  const auto session = open();
  const auto weight = session->weight(0), kept = weight->clone();
  EXPECT_EQ(weight->num_bytes(), 0);
  EXPECT_EQ(kept->num_bytes(), weight->numel() * 4);
  const std::vector<double> before = weight->values();
  session->step(2);
  EXPECT_EQ(kept->values(), before);
  EXPECT_NE(weight->values(), before);
  const Histogram histogram = weight->histogram(7);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), int64_t{0}), weight->numel());
  EXPECT_EQ(weight->slice(0, 3, 5)->slice(1, 2, 3)->values(),
            (std::vector<double>{weight->values()[3 * 32 + 2], weight->values()[4 * 32 + 2]}));
  EXPECT_EQ(code_of([&] { weight->slice(0, 0, 65); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { weight->slice(2, 0, 1); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { weight->slice(0, 1, 1)->stats(); }), ExitCode::kUsage);
}

TEST_F(OpenSessionTest, SavesOnRequestAndGoesOnFromThere) {
  {
    const auto session = open();
    session->step(3);
    const SavedCheckpoint saved = session->save();
    EXPECT_EQ(saved.step, 3);
    EXPECT_EQ(session->save().path, saved.path);  // nothing happened since
  }
  const auto session = open();
  EXPECT_NE(session->facts().checkpoint, "");
  EXPECT_EQ(session->state().train.step, 3);
  session->run_for({2, DurationUnit::kBatch});  // saves at step 4, as the recipe says
  EXPECT_EQ(session->state().train.step, 5);
  EXPECT_EQ(session->save().step, 5);
}

TEST_F(OpenSessionTest, ASaveReturnsItsOwnFolderWhereOthersAreNewerOrOfTheSameStep) {
  const auto session = open();
  session->step(1);
  const SavedCheckpoint first = session->save();
  session->step(1);
  const SavedCheckpoint second = session->save();
  std::set<std::string> paths = {first.path, second.path};
  for (const SavedCheckpoint& loaded : {first, second, first, second}) {
    session->load(loaded.path);
    const SavedCheckpoint again = session->save();
    EXPECT_EQ(again.step, loaded.step);
    EXPECT_TRUE(paths.insert(again.path).second) << again.path;
    EXPECT_TRUE(tensors_of(again.path) == tensors_of(loaded.path));
  }
}

TEST_F(OpenSessionTest, CommandsActBeforeTheNextStep) {
  config_.ckpt.async = false;
  const auto session = open();
  session->step(1);
  const double scheduled = session->lr_at(1);
  session->command(make_command("set_lr", {1e-3}, nullptr, "repl"));
  session->command(make_command("save", {"here"}, nullptr, "repl"));
  EXPECT_FALSE(session->state().lr_pin);
  EXPECT_EQ(session->step(1).front().lr, 1e-3);
  ASSERT_TRUE(session->state().lr_pin);
  EXPECT_EQ(session->state().lr_pin->by, "repl");
  EXPECT_EQ(session->state().lr_pin->scheduled, scheduled);
  const CheckpointInfo saved = list_checkpoints(run_dir() + "/checkpoints").front();
  EXPECT_EQ(saved.tag + std::to_string(saved.step), "here1");
  session->command(make_command("stop", Json::array(), nullptr, "repl"));
  EXPECT_TRUE(session->step(3).empty());
  session->command(make_command("set_lr", {nullptr}, nullptr, "repl"));
  EXPECT_EQ(session->step(3).size(), 3u);
  EXPECT_FALSE(session->state().lr_pin);
}

TEST_F(OpenSessionTest, LoadsACheckpointAndGoesOnAsFromThere) {
  const auto session = open();
  session->command(make_command("set_lr", {1e-3}, nullptr, "repl"));
  session->step(3);
  const SavedCheckpoint third = session->save();
  session->command(make_command("set_lr", {nullptr}, nullptr, "repl"));
  session->command(make_command("set_betas", Json::array({Json::array({0.5, 0.6})}), nullptr, "repl"));
  const std::vector<StepMetrics> first = session->step(2);
  session->command(make_command("set_weight_decay", {0.5}, nullptr, "repl"));
  session->step(1);
  EXPECT_EQ(session->load(third.path).step, 3);
  EXPECT_EQ(session->state().train.step, 3);
  EXPECT_EQ(session->state().lr_pin->by, "repl");
  EXPECT_EQ(session->optimizer().config.at("betas").at(0), 0.9);
  session->command(make_command("set_lr", {nullptr}, nullptr, "repl"));
  session->command(make_command("set_betas", Json::array({Json::array({0.5, 0.6})}), nullptr, "repl"));
  const std::vector<StepMetrics> again = session->step(2);
  ASSERT_EQ(again.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(again[i].loss, first[i].loss);
  EXPECT_EQ(code_of([&] { session->load(dir_ / "nothing"); }), ExitCode::kUnusable);
  EXPECT_EQ(session->state().train.step, 5);
}

TEST_F(OpenSessionTest, AStopEndsStepsAtABoundary) {
  const auto session = open();
  stop_ = 2;
  EXPECT_TRUE(session->step(5).empty());
  stop_ = 0;
  EXPECT_EQ(session->step(2).size(), 2u);
}

TEST_F(OpenSessionTest, PeeksAtWhatComesNext) {
  const auto session = open();
  const auto first = session->peek(4);
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[0].tokens.size(), 16u);
  for (size_t i = 0; i + 1 < 16; ++i) EXPECT_EQ(first[0].labels[i], first[0].tokens[i + 1]) << i;
  EXPECT_LT(first[0].labels[15], 0) << "nothing follows the last token of a sample";
  EXPECT_EQ(session->peek(4), first);
  session->step(1);
  EXPECT_NE(session->peek(4), first);
}

TEST_F(OpenSessionTest, LogitsOfAllPositionsAreThoseOfEachPrefix) {
  const auto session = open();
  session->step(2);
  const std::vector<int32_t> tokens = {3, 9, 27, 1, 60};
  const auto all = session->logits(tokens, /*every_position=*/true);
  EXPECT_EQ(all->shape(), (std::vector<int64_t>{5, 64}));
  for (size_t n = 1; n <= tokens.size(); ++n) {
    const auto last =
        session->logits({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)}, false);
    EXPECT_EQ(last->shape(), std::vector<int64_t>{64});
    const std::vector<double> alone = last->values(),
                              row = all->select(0, static_cast<int64_t>(n) - 1)->values();
    for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], alone[i], 1e-4) << n << " " << i;
  }
  EXPECT_EQ(code_of([&] { session->logits({64}, true); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->logits({}, true); }), ExitCode::kUsage);
}

TEST_F(OpenSessionTest, ActivationsAreTheStreamFromTheEmbeddingOn) {
  const auto session = open();
  const std::vector<int32_t> tokens = {3, 9, 27};
  const auto streams = session->activations(tokens);
  ASSERT_EQ(streams.size(), 3u);  // before each of two blocks, and behind them
  for (const auto& stream : streams) {
    EXPECT_EQ(stream->shape(), (std::vector<int64_t>{3, 32}));
    EXPECT_EQ(stream->num_bytes(), 3 * 32 * 4);
  }
  ASSERT_EQ(session->params()[0].name, "model.embed_tokens.weight");
  for (size_t t = 0; t < tokens.size(); ++t)
    EXPECT_EQ(streams[0]->select(0, static_cast<int64_t>(t))->values(),
              session->weight(0)->select(0, tokens[t])->values());
  EXPECT_GT(streams[1]->combined(TensorOp::kSub, *streams[0])->stats().norm, 0);
}

TEST_F(OpenSessionTest, GeneratesTokensFromTokensWithoutATokenizer) {
  const auto session = open();
  std::vector<int32_t> seen = {5, 6};
  const auto chosen = session->generate_tokens(seen, {.max_tokens = 6, .temperature = 0});
  ASSERT_EQ(chosen.value().size(), 6u);
  for (const int32_t id : *chosen) {  // greedily: the likeliest after all that came before
    const std::vector<double> logits = session->logits(seen, false)->values();
    EXPECT_EQ(id, std::max_element(logits.begin(), logits.end()) - logits.begin());
    seen.push_back(id);
  }
  EXPECT_EQ(code_of([&] { session->generate_tokens({}, {}); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->generate_tokens({64}, {}); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->generate_tokens({1}, {.stop = {"x"}}); }), ExitCode::kUsage);
}

TEST_F(OpenSessionTest, TensorsAreCalculatedWith) {
  const auto session = open();
  const auto w = session->weight(0);  // [64, 32]
  const std::vector<double> values = w->values();
  const auto expect = [&](const std::unique_ptr<TensorView>& result, const std::function<double(double)>& f) {
    EXPECT_EQ(result->shape(), w->shape());
    EXPECT_EQ(result->num_bytes(), 64 * 32 * 4);
    const std::vector<double> got = result->values();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], f(values[i]), 1e-6) << i;
  };
  expect(w->combined(TensorOp::kMul, *w->scalar(2)), [](double x) { return 2 * x; });
  expect(w->combined(TensorOp::kAdd, *w), [](double x) { return 2 * x; });
  expect(w->combined(TensorOp::kSub, *w->scalar(1)), [](double x) { return x - 1; });
  expect(w->combined(TensorOp::kDiv, *w->scalar(4)), [](double x) { return x / 4; });
  expect(w->combined(TensorOp::kPow, *w->scalar(2)), [](double x) { return x * x; });
  expect(w->combined(TensorOp::kGt, *w->scalar(0)), [](double x) { return x > 0 ? 1 : 0; });
  expect(w->combined(TensorOp::kLe, *w->scalar(0)), [](double x) { return x <= 0 ? 1 : 0; });
  expect(w->applied(TensorFunction::kAbs), [](double x) { return std::abs(x); });
  expect(w->applied(TensorFunction::kNeg), [](double x) { return -x; });
  const auto row = w->select(0, 3);
  EXPECT_EQ(row->shape(), std::vector<int64_t>{32});
  EXPECT_EQ(row->num_bytes(), 0) << "a view";
  EXPECT_EQ(w->combined(TensorOp::kSub, *row)->select(0, 3)->stats().norm, 0) << "rows are repeated";
  EXPECT_EQ(code_of([&] { w->combined(TensorOp::kAdd, *w->slice(0, 0, 3)); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { w->select(0, 64); }), ExitCode::kUsage);
}

TEST_F(OpenSessionTest, EvaluatesAllSetsOrLooksAtOne) {
  for (const char* name : {"c4", "code"}) {
    write_data(std::string(name) == "c4" ? 6 : 3, 16, 64, name);
    MdsConfig data = config_.train_data.as<MdsConfig>();
    data.split = name;
    config_.eval_data[name].value = data;
  }
  const auto session = open();
  const EvalResults look = session->evaluate("code").value();
  ASSERT_EQ(look.size(), 1u);
  EXPECT_EQ(look.at("code").tokens, 3 * 15);
  EXPECT_TRUE(session->state().train.eval.sets.empty());
  const EvalResults all = session->evaluate("").value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("code").loss, look.at("code").loss);
  EXPECT_EQ(session->state().train.eval.total->last.loss, total_of(all).loss);
  EXPECT_EQ(session->state().train.eval.sets.at("c4").best.loss, all.at("c4").loss);
  try {
    session->evaluate("cod");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_STREQ(
        error.what(),
        "[eval] expected a set of eval_data, got \"cod\"; available: c4, code; did you mean \"code\"?");
  }
  stop_ = 2;
  EXPECT_FALSE(session->evaluate("code"));
  EXPECT_FALSE(session->evaluate(""));
}

TEST_F(OpenSessionTest, TheOnlySetIsEvaluatedByItsNameToo) {
  write_data(3, 16, 64, "val");
  MdsConfig data = config_.train_data.as<MdsConfig>();
  data.split = "val";
  config_.eval_data["val"].value = data;
  const auto session = open();
  session->evaluate("val");
  EXPECT_EQ(session->state().train.eval.total->last.loss,
            session->state().train.eval.sets.at("val").last.loss);
}

TEST_F(OpenSessionTest, AModelThatCannotFitIsRefusedBeforeAnythingIsTaken) {
  LlamaConfig wide = config_.model.as<LlamaConfig>();
  wide.width = 1 << 20;
  config_.model.value = wide;
  config_.run_dir = dir_ / "too_big";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kNumerics);
  const std::string text = error.what();
  for (const char* part :
       {"[memory] not enough memory: this run takes ", " free\nmemory per rank\n  parameters ", "\n  total ",
        "`tycho run --force` starts it anyway"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
  RunRequest forced = request();
  forced.force = true;
  EXPECT_EQ(require_memory(config_, at::kCPU, forced), 0);
}

TEST_F(OpenSessionTest, TheFactsOfARunHaveThePlannedPeakOfItsMemory) {
  const int64_t before = memory_bytes(at::kCPU);
  const auto session = open();
  const int64_t parameters = session->facts().run.num_params * int64_t{16};  // fp32, gradients, two moments
  EXPECT_GT(session->facts().run.planned_memory_bytes, before + parameters);
}

TEST_F(OpenSessionTest, AFolderThatIsNotARunsIsLeftAsItIs) {
  config_.run_dir = dir_ / "mine";
  std::filesystem::create_directories(run_dir());
  std::ofstream(run_dir() + "/recipe.lua") << "mine";
  EXPECT_EQ(run_error().code(), ExitCode::kFolderOwned);
  EXPECT_EQ(read_file(run_dir() + "/recipe.lua"), "mine");
  for (const auto& entry : std::filesystem::directory_iterator(run_dir()))
    EXPECT_EQ(entry.path().filename(), "recipe.lua");
}

TEST_F(OpenSessionTest, ProgressWithoutItsCheckpointsIsNoFreshStart) {
  run();
  const std::string checkpoints = run_dir() + "/checkpoints",
                    metrics = read_file(run_dir() + "/metrics.jsonl");
  std::filesystem::rename(checkpoints, dir_ / "archive");
  const std::string loose = checkpoints + "/step-000000001.0123abcd";
  std::filesystem::create_directories(loose);
  std::ofstream(loose + "/rank-00000.safetensors") << "loose";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("events.jsonl says \"step 12 saved"), std::string::npos)
      << error.what();
  EXPECT_EQ(read_file(run_dir() + "/metrics.jsonl"), metrics);
  EXPECT_TRUE(std::filesystem::exists(loose + "/rank-00000.safetensors"));
  config_.resume = "none";
  EXPECT_EQ(run(), 0);
}

TEST_F(OpenSessionTest, SecretsThatTheRecipeReadAreInNoFileOfTheRun) {
  ::setenv("OPEN_SESSION_HIDDEN", "canary-71", 1);
  RunRequest secretive = request();
  secretive.provenance_json = R"({"env.OPEN_SESSION_HIDDEN":[{"by":"environment","value":"***"}]})";
  secretive.pins = {"note=canary-71"};
  {
    const auto session = open_session(secretive, nullptr, stop_);
    session->event("info", "it is canary-71", {{"canary-71", "canary-71"}});
    session->metric("canary-71", 1);
    session->step(1);
    session->save();
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run_dir())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(read_file(entry.path().string()).find("canary"), std::string::npos) << entry.path();
  }
  EXPECT_NE(read_file(run_dir() + "/events.jsonl").find("it is ***"), std::string::npos);
  EXPECT_NE(read_file(run_dir() + "/metrics.jsonl").find("\"***\":1"), std::string::npos);
}

TEST_F(OpenSessionTest, WhatTheRecipeDoesNotHaveIsNamed) {
  const auto session = open();
  EXPECT_EQ(code_of([&] { session->evaluate(""); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->generate("x", {}, [](const std::string&) {}); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->decode({1}); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->logits({64}, false); }), ExitCode::kUsage);
  EXPECT_EQ(code_of([&] { session->logits({}, false); }), ExitCode::kUsage);
  EXPECT_EQ(session->logits({1, 2}, false)->shape(), std::vector<int64_t>{64});
}

}  // namespace
}  // namespace tycho
