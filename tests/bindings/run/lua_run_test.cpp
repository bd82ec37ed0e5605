// Callbacks in Lua on real runs: every ready one, and what they record.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tests/bindings/run/lua_run_fixture.h"
#include "tests/trainer/aten.h"
#include "tests/trainer/metrics/fixtures.h"
#include "tests/trainer/run/overflowing_model.h"

namespace tycho {
namespace {

/// The kinds of t.cb, of the list that recipes know: those of one's own are t.observe, t.control and
/// t.everywhere.
template <class... Kinds>
std::vector<std::string> ready_kinds(const std::variant<Kinds...>&) {
  std::vector<std::string> kinds = {Kinds::kKind...};
  for (const char* own : {ObserveConfig::kKind, ControlConfig::kKind, EverywhereConfig::kKind})
    std::erase(kinds, own);
  return kinds;
}

/// Keys without which a kind cannot be made, and those that make it act within twelve steps.
std::string keys_of(const std::string& kind) {
  if (kind == "generate") return R"(prompts = { "the lines of", "a" }, max_tokens = 2)";
  if (kind == "threshold_stop") return "below = 0";
  if (kind == "notify") return R"(url_env = "TYCHO_TEST_WEBHOOK")";
  if (kind == "histograms") return R"(of = "both", bins = 5)";
  if (kind == "loss_spike") return R"(warmup = "1ba", sigmas = 1e-9)";
  return "";
}

TEST_F(LuaRunTest, EveryReadyCallbackRuns) {
  const std::vector<std::string> kinds = ready_kinds(CallbackConfig().value);
  ASSERT_GE(kinds.size(), 11u);
  std::string lines;
  for (const std::string& kind : kinds) {
    lines += "r.callbacks." + kind + " = t.cb." + kind + " { " + keys_of(kind) + " }\n";
    lines += "if r.callbacks." + kind + ".every ~= nil then r.callbacks." + kind + ".every = \"1ba\" end\n";
  }
  load(lines);
  const ScopedEnv nobody("TYCHO_TEST_WEBHOOK", "http://127.0.0.1:9/nobody-listens");
  ASSERT_EQ(run(), 0);
  for (const Json& warning : events("warning")) {
    const std::string text = warning.at("text");
    EXPECT_TRUE(text.starts_with("loss spike") || text.starts_with("[notify]") ||
                text.find("training waits for it") != std::string::npos)
        << text;
  }
  const Json costs = events("callbacks").at(0).at("facts");
  for (const std::string& kind : kinds) EXPECT_TRUE(costs.contains(kind)) << kind << " was not called";
  for (const char* metric : {"speed/tokens_per_s", "memory/peak_bytes", "lr/group1", "time/remaining_s",
                             "loss_ema", "grad_norm/layer0", "param_norm/layer1", "machine/cpu_share",
                             "machine/process_bytes", "activations/layer0/rms", "eval.loss", "eval.val.loss"})
    EXPECT_FALSE(curve(metric).empty()) << metric;
  const std::vector<Json> histograms = events("histogram");
  ASSERT_GE(histograms.size(), 24u);  // of gradients and parameters at every step
  std::set<std::string> names;
  for (const Json& histogram : histograms) {
    names.insert(histogram.at("facts").at("name"));
    EXPECT_EQ(histogram.at("facts").at("counts").size(), 5u);
  }
  EXPECT_TRUE(names.contains("gradients/model.layers.0.self_attn.o_proj.weight"));
  EXPECT_TRUE(names.contains("parameters/model.norm.weight"));
  const std::vector<Json> texts = events("text");
  ASSERT_EQ(texts.size(), 24u);
  EXPECT_EQ(texts[0].at("facts").at("name"), "the lines of");
}

/// A callback and a schedule that the recipe defines.
const char* const kComponents = R"(
  t.component { name = "counter", kind = "control", fields = { by = t.integer { default = 1, min = 1 } }, state = { sum = 0 },
    batch_end = function(ctx, st, cfg)
      st.sum = st.sum + cfg.by
      ctx.log:metric("sum", st.sum)
      if ctx.step == 6 then ctx.cmd.save "half" end
    end }
  t.component { name = "drop", kind = "dynamic_schedule", fields = { by = 0.5 }, state = { factor = 1 },
    factor = function(s, st, cfg)
      if s.step > 0 and s.step % 4 == 0 then st.factor = st.factor * cfg.by end
      return st.factor
    end }
  r.callbacks.count = t.cb.counter { by = 3, every = "2ba" }
  r.scheduler = t.sched.drop { by = 0.1 }
)";

TEST_F(LuaRunTest, ComponentsSeeTheirFieldsAndContinueWithTheirState) {
  load(kComponents);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(curve("sum"), (std::map<int64_t, double>{{2, 3}, {4, 6}, {6, 9}, {8, 12}, {10, 15}, {12, 18}}));
  const std::map<int64_t, double> rates = curve("lr"), losses = curve("loss");
  EXPECT_DOUBLE_EQ(rates.at(4), 1e-2);
  EXPECT_DOUBLE_EQ(rates.at(5), 1e-2 * 0.1);
  EXPECT_DOUBLE_EQ(rates.at(9), 1e-2 * (0.1 * 0.1));

  std::filesystem::rename(dir_ / "run", dir_ / "whole");
  load(std::string(kComponents) + "r.max_duration = \"6ba\"\n");
  ASSERT_EQ(run(), 0);
  load(kComponents);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(curve("sum").at(12), 18) << "the state of a callback is in the checkpoint";
  EXPECT_EQ(curve("lr"), rates) << "and that of a schedule";
  EXPECT_EQ(curve("loss"), losses);
}

/// The monitor at every step, and what each step took from each parameter as a callback of one's own sees it.
const char* const kWatched = R"(
  r.clip.norm = 0
  r.callbacks.monitor = t.cb.optimizer_monitor { every = "1ba" }
  r.callbacks.norms = t.cb.grad_norm { per = "param", every = "1ba" }
  local before = {}
  r.callbacks.own = t.everywhere {
    grads_ready = function(ctx) for name, param in ctx.model.params do before[name] = param:keep() end end,
    batch_end = function(ctx)
      for name, param in ctx.model.params do ctx.log:metric("taken/" .. name, (before[name] - param):norm()) end
    end,
  }
)";

TEST_F(LuaRunTest, TheOptimizerMonitorRecordsWhatAStepTookFromEachParameter) {
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  // Each with what the first moment has of the first gradient.
  for (const auto& [optimizer, share] : std::map<std::string, double>{
           {"r.optimizer = t.optim.adamw { lr = 1e-2, weight_decay = 0.1 }", 0.1},
           {"r.optimizer = t.optim.decoupled_adamw { lr = 1e-2, weight_decay = 0.01, betas = { 0.8, 0.9 } }",
            0.2}}) {
    SCOPED_TRACE(optimizer);
    std::filesystem::remove_all(dir_ / "run");
    load(optimizer + kWatched);
    ASSERT_EQ(run(), 0);
    const auto taken = curve("taken/" + name), recorded = curve("l2_norm/update/" + name);
    ASSERT_EQ(recorded.size(), 12u);
    for (const auto& [step, norm] : taken) EXPECT_NEAR(recorded.at(step), norm, 1e-4 * norm) << step;
    EXPECT_EQ(curve("l2_norm/grad/" + name), curve("grad_norm/" + name));
    EXPECT_EQ(curve("l2_norm/grad/global"), curve("grad_norm"));
    EXPECT_NEAR(curve("l2_norm/moment/" + name).at(1), share * curve("grad_norm/" + name).at(1),
                1e-5 * curve("grad_norm/" + name).at(1));
    EXPECT_NEAR(curve("cosine/moment_grad/" + name).at(1), 1, 1e-5);
    EXPECT_LT(curve("cosine/moment_grad/" + name).at(12), 0.999);
  }
}

TEST_F(LuaRunTest, TheOptimizerMonitorKnowsWhatOtherOptimizersKeep) {
  const std::string matrix = "model.layers.1.mlp.down_proj.weight", embedding = "model.embed_tokens.weight";
  const auto trained_with = [&](const std::string& optimizer) {
    std::filesystem::remove_all(dir_ / "run");
    load("r.optimizer = " + optimizer +
         R"( r.callbacks.m = t.cb.optimizer_monitor { every = "1ba", from = "10ba" })");
    ASSERT_EQ(run(), 0);
  };
  trained_with("t.optim.muon { lr = 1e-2 }");
  EXPECT_GT(curve("l2_norm/moment/" + matrix).at(12), 0);
  EXPECT_GT(curve("l2_norm/moment/" + embedding).at(12), 0);
  EXPECT_TRUE(curve("l2_norm/update/" + matrix).empty());
  trained_with("t.optim.sgd { lr = 1e-2 }");
  EXPECT_TRUE(curve("l2_norm/moment/" + matrix).empty());
  EXPECT_GT(curve("l2_norm/param/" + matrix).at(12), 0);
  trained_with(
      R"(t.optim.adamw { lr = 1e-2 } r.param_groups = { { match = "embed_tokens", freeze = true } })");
  EXPECT_TRUE(curve("l2_norm/param/" + embedding).empty());
  EXPECT_GT(curve("l2_norm/update/" + matrix).at(12), 0);
}

TEST_F(LuaRunTest, ALossSpikeTakesTheActionOfTheRecipe) {
  // A rate so high that the loss rises after the first steps.
  const std::string spike =
      R"(r.optimizer.lr = 1.0  r.callbacks.s = t.cb.loss_spike { warmup = "1ba", sigmas = 1e-9, )";
  load(spike + R"(action = "scale_lr", factor = 0.5, for_next = "3ba" })");
  ASSERT_EQ(run(), 0);
  ASSERT_FALSE(events("command").empty());
  EXPECT_EQ(events("command")[0].at("text"), "scale_lr(0.5, for_next = 3ba) by s");
  Json spiked;
  for (const Json& warning : events("warning"))
    if (spiked.is_null() && warning.at("text").get<std::string>().starts_with("loss spike")) spiked = warning;
  ASSERT_FALSE(spiked.is_null());
  const int64_t step = spiked.at("facts").at("step");
  EXPECT_EQ(spiked.at("facts").at("loss"), curve("loss").at(step));
  EXPECT_NE(spiked.at("text").get<std::string>().find("loss="), std::string::npos);
  EXPECT_DOUBLE_EQ(curve("lr").at(step + 1), 0.5);
  load(spike + R"(action = "stop" }  r.resume = "none")");
  ASSERT_EQ(run(), 0);
  EXPECT_NE(events("run_end").back().at("text").get<std::string>().find("is a spike above"),
            std::string::npos);
}

/// The largest token of write_data's samples, which few of them have.
int64_t largest_token(int64_t num_samples, int64_t seq_len) {
  at::manual_seed(1);
  int64_t largest = 0;
  for (int64_t i = 0; i < num_samples; ++i)
    largest = std::max(largest, at::randint(1, 4, {seq_len}, at::kLong).sum().item<int64_t>() + i);
  return largest;
}

TEST_F(LuaRunTest, ReadyCallbacksGoOnOverAStepThatTheGuardSkips) {
  const std::string model =
      "r.model = t.model.mpt { width = 32, layers = 2, heads = 4, vocab_size = 512, max_seq_len = 64, tied = "
      "false,\n"
      "  weights = ";
  load(model + "\"\" }");
  ASSERT_EQ(run("1ba"), 0);
  export_overflowing(find_checkpoint(run_dir()), dir_ / "overflowing", largest_token(64, 16));
  std::filesystem::remove_all(run_dir());
  std::string lines = model + "\"" + (dir_ / "overflowing") + "\" }\nr.max_duration = \"16ba\"\n" +
                      "r.guard.action = \"skip\"\n";
  for (const char* kind : {"loss_ema", "loss_spike", "kill_loss_spike", "grad_norm", "param_norm",
                           "optimizer_monitor", "activations"})
    lines += fmt::format("r.callbacks.{0} = t.cb.{0} {{ every = \"1ba\" }}\n", kind);
  load(lines);
  ASSERT_EQ(run(), 0);
  std::set<std::string> said, null;
  int skipped = 0;
  for (const Json& warning : events("warning")) {
    const std::string text = warning.at("text");
    skipped += text.find(" skipped: loss nan") != std::string::npos;
    const size_t at = text.find(" leaves out losses that are not finite");
    if (at == std::string::npos) continue;
    EXPECT_TRUE(said.insert(text.substr(0, at)).second) << text;
  }
  EXPECT_TRUE(skipped >= 1 && skipped <= 8) << skipped;
  EXPECT_EQ(said, (std::set<std::string>{"kill_loss_spike", "loss_ema", "loss_spike"}));
  for (const Json& line : this->lines("metrics.jsonl"))
    if (line.contains("not_finite"))
      for (const auto& [name, text] : line.at("not_finite").items()) null.insert(name);
  for (const char* name : {"loss", "grad_norm", "grad_norm/layer0", "l2_norm/grad/global"})
    EXPECT_TRUE(null.contains(name)) << name;
  EXPECT_FALSE(null.contains("loss_ema"));
  EXPECT_EQ(std::ssize(curve("loss_ema")), 16 - skipped);
}

TEST_F(LuaRunTest, WhatIsRecordedInsideAStepBelongsToThatStep) {
  load(
      "r.callbacks.a = t.observe {\n"
      "  batch_start = function(ctx) ctx.log:metric(\"begun\", ctx.step + 1) end,\n"
      "  after_forward = function(ctx) ctx.log:metric(\"rms\", ctx.activations[1].rms) end,\n"
      "  grads_ready = function(ctx)\n"
      "    ctx.log:metric(\"norm\", ctx.grad_norm) ctx.log:info(\"ready\", { norm = ctx.grad_norm }) end,\n"
      "  batch_end = function(ctx) ctx.log:metric(\"ended\", ctx.step) end }");
  ASSERT_EQ(run(), 0);
  for (const char* name : {"begun", "rms", "norm", "ended"}) {
    ASSERT_EQ(curve(name).size(), 12u) << name;
    EXPECT_EQ(curve(name).begin()->first, 1) << name;
  }
  for (const auto& [step, value] : curve("begun")) EXPECT_EQ(value, step);
  for (const auto& [step, value] : curve("ended")) EXPECT_EQ(value, step);
  EXPECT_EQ(curve("norm"), curve("grad_norm"));
  for (const Json& event : events("info")) {
    const int64_t step = event.at("facts").at("step");
    EXPECT_EQ(event.at("facts").at("norm"), curve("grad_norm").at(step));
  }
}

TEST_F(LuaRunTest, EvaluationsAreCurvesOfTheRun) {
  load("r.eval_data.again = t.data.mds { local_dir = \"" + (dir_ / "data") +
       "\", split = \"val\" }\nr.eval.first = true");
  ASSERT_EQ(run(), 0);
  std::set<int64_t> steps;
  for (const Json& event : events("eval")) {
    const Json& facts = event.at("facts");
    const std::string prefix =
        facts.contains("name") ? "eval." + facts.at("name").get<std::string>() : "eval";
    const int64_t step = event.at("step");
    EXPECT_EQ(curve(prefix + ".loss").at(step), facts.at("loss")) << prefix;
    EXPECT_EQ(curve(prefix + ".perplexity").at(step), facts.at("perplexity")) << prefix;
    steps.insert(step);
  }
  EXPECT_EQ(steps, (std::set<int64_t>{0, 4, 8, 12}));
  for (const char* name : {"eval.loss", "eval.val.loss", "eval.again.loss"})
    EXPECT_EQ(curve(name).size(), 4u) << name;
}

}  // namespace
}  // namespace tycho
