// A session that computes nothing: known numbers behind the interface of the engine.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/bindings/run/fake_tensor.h"
#include "trainer/base/error.h"
#include "trainer/session/session.h"

namespace tycho {

/// Four parameters in two layers; loss 1 / step; lr falls from 1e-3 to 0 over ten steps.
class FakeSession final : public TrainingSession {
 public:
  /// `display` hears of every step.
  explicit FakeSession(std::unique_ptr<Reporter> display = nullptr) : display_(std::move(display)) {
    facts_.run.run_name = "fake", facts_.run.run_dir = "runs/fake", facts_.run.device = "nothing";
    facts_.run.total_steps = 10, facts_.run.num_params = 56, facts_.run.num_samples = 100;
    facts_.num_layers = 2;
    facts_.recipe = {{"max_duration", "10ba"},
                     {"model", {{"kind", "llama"}}},
                     {"ema", {{"half_life", "5ba"}, {"decay", nullptr}, {"evaluate", true}}},
                     {"scheduler", {{"kind", "linear"}}},
                     {"train_data", {{"local_dir", "data"}}}};
    params_ = {{"embed.weight", {8, 4}, -1, false},
               {"layers.0.weight", {2, 4}, 0, false},
               {"layers.1.weight", {2, 4}, 1, false},
               {"norm.weight", {8}, -1, true}};
  }

  std::vector<std::pair<std::string, double>> metrics;  // what metric() was given

  const SessionFacts& facts() const override { return facts_; }
  SessionState state() const override {
    SessionState now = state_;
    now.recorded_step = now.train.step;
    return now;
  }
  const std::vector<ParamInfo>& params() const override { return params_; }
  void command(Command command) override {
    command.by = "repl";
    events_.push_back("command: " + command_text(command));
    if (command.name != "set_lr") return;
    state_.lr_pin.reset();
    if (command.arguments.contains("lr"))
      pinned_ = command.arguments.at("lr").get<double>();
    else
      pinned_.reset();
  }
  std::vector<StepMetrics> step(int64_t n) override {
    std::vector<StepMetrics> done;
    if (pinned_) state_.lr_pin = {1e-3, "repl"};
    for (int64_t i = 0; i < n && state_.train.step < facts_.run.total_steps; ++i) {
      StepMetrics now;
      now.step = ++state_.train.step;
      now.tokens = state_.train.tokens += 64;
      now.loss = 1.0 / static_cast<double>(now.step);
      now.lr = pinned_.value_or(lr_at(now.step - 1)), now.grad_norm = 0.5, now.step_s = 0.25;
      now.tokens_per_s = 256;
      state_.last = now;
      if (display_) display_->step(now, true);
      done.push_back(now);
    }
    return done;
  }
  void run_for(const Duration& length) override { step(static_cast<int64_t>(length.value)); }
  int fit() override { return step(facts_.run.total_steps), 0; }
  std::optional<EvalResults> evaluate(const std::string& set) override {
    EvalResults results = {{"c4", eval_result({96 * 1.0, 96, 96}, 0.25)},
                           {"code", eval_result({32 * 5.0, 32, 32}, 0.25)}};
    if (!set.empty()) std::erase_if(results, [&](const auto& one) { return one.first != set; });
    return results;
  }
  SavedCheckpoint save() override { return {"runs/fake/checkpoints/step-1", state_.train.step}; }
  SavedCheckpoint load(const std::string& path) override {
    state_.train.step = 7;
    return {path, 7};
  }
  void close(const std::string& reason, std::optional<ExitCode> /*failure*/) override { closed_ = reason; }
  std::unique_ptr<TensorView> weight(int64_t param) override {
    return FakeTensor::counting(params_.at(static_cast<size_t>(param)).shape);
  }
  std::unique_ptr<TensorView> grad(int64_t param) override { return weight(param); }
  std::unique_ptr<TensorView> moment(int64_t param, const std::string& name) override {
    return name == "exp_avg" ? weight(param) : nullptr;
  }
  OptimizerState optimizer() const override {
    return {{{"kind", "adamw"}, {"betas", {0.9, 0.95}}, {"eps", 1e-8}, {"weight_decay", 0.1}},
            lr_at(state_.train.step),
            1.0,
            {{1, 0.1, {0.9, 0.95}, false, {"embed.weight", "layers.0.weight", "layers.1.weight"}},
             {1, 0, {0.9, 0.95}, true, {"norm.weight"}}}};
  }
  double lr_at(int64_t steps_done) const override {
    return 1e-3 * (1 - static_cast<double>(steps_done) / static_cast<double>(facts_.run.total_steps));
  }
  std::optional<std::string> generate(const std::string& prompt, const TextOptions& options,
                                      const std::function<void(const std::string&)>&) override {
    return prompt + fmt::format(" and {} more", options.max_tokens);
  }
  /// Each token again, one higher.
  std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& prompt,
                                                      const TextOptions&) override {
    std::vector<int32_t> next = prompt;
    for (int32_t& id : next) ++id;
    return next;
  }
  std::unique_ptr<TensorView> logits(const std::vector<int32_t>& tokens, bool every_position) override {
    const auto count = static_cast<int64_t>(tokens.size());
    std::vector<int64_t> shape = {count};
    if (every_position) shape.insert(shape.begin(), 1);
    return std::make_unique<FakeTensor>(shape, std::vector<double>(tokens.begin(), tokens.end()),
                                        /*owned=*/true);
  }
  std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& tokens) override {
    std::vector<std::unique_ptr<TensorView>> streams;
    for (int64_t i = 0; i <= facts_.num_layers; ++i)
      streams.push_back(FakeTensor::counting({static_cast<int64_t>(tokens.size()), 4})->clone(false));
    return streams;
  }
  /// Every token attends evenly to all.
  std::unique_ptr<TensorView> attention(const std::vector<int32_t>& tokens, int64_t layer) override {
    if (layer >= facts_.num_layers) fail(ExitCode::kUsage, "[attention] no layer {}", layer + 1);
    const auto count = static_cast<int64_t>(tokens.size());
    return std::make_unique<FakeTensor>(
        std::vector<int64_t>{2, count, count},
        std::vector<double>(static_cast<size_t>(2 * count * count), 1.0 / static_cast<double>(count)),
        /*owned=*/true);
  }
  std::vector<int32_t> encode(const std::string& text) const override { return {text.begin(), text.end()}; }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    return {tokens.begin(), tokens.end()};
  }
  std::vector<PeekedSequence> peek(int64_t n) const override {
    return std::vector<PeekedSequence>(static_cast<size_t>(n), {{72, 105}, {105, -100}});
  }
  void profile_begin() override { profiled_ = state_.train.step; }
  Json profile_end() override {
    return {
        {"path", "runs/fake/profile/trace.json"},
        {"ranges", {{{"name", "optimizer"}, {"calls", state_.train.step - profiled_}, {"seconds", 0.25}}}}};
  }
  ProfileState profile_state() const override { return {profiled_ > 0 ? "active" : "wait", trace_}; }
  void metric(const std::string& name, double value) override { metrics.emplace_back(name, value); }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    events_.push_back(kind + ": " + text + " " + facts.dump());
    if (display_) display_->event(kind, text, facts);
  }
  MemoryUse memory() const override { return {1 << 20, 2 << 20, 4 << 20, 1 << 19}; }

  std::unique_ptr<Reporter> display_;
  std::vector<std::string> events_;
  std::string closed_;
  std::optional<double> pinned_;
  int64_t profiled_ = 0;
  std::string trace_;  // the newest
  SessionFacts facts_;
  SessionState state_;
  std::vector<ParamInfo> params_;
};

}  // namespace tycho
