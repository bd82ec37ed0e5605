// A session that computes nothing: known numbers behind the interface of the engine.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/session/session.h"

namespace tycho {

/// A small row-major tensor on the host.
class FakeTensor final : public TensorView {
 public:
  FakeTensor(std::vector<int64_t> shape, std::vector<double> numbers, bool owned = false)
      : shape_(std::move(shape)), numbers_(std::move(numbers)), owned_(owned) {}
  /// 1, 2, 3, ... over a shape.
  static std::unique_ptr<FakeTensor> counting(const std::vector<int64_t>& shape) {
    std::vector<double> numbers;
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    for (int64_t i = 1; i <= count; ++i) numbers.push_back(static_cast<double>(i));
    return std::make_unique<FakeTensor>(shape, numbers);
  }

  const std::vector<int64_t>& shape() const override { return shape_; }
  std::string dtype() const override { return "f32"; }
  std::string device() const override { return "cpu"; }
  int64_t num_bytes() const override { return owned_ ? numel() * 4 : 0; }
  TensorStats stats() const override {
    TensorStats s;
    const auto n = static_cast<double>(numbers_.size());
    s.min = s.max = numbers_.at(0);
    for (const double x : numbers_) {
      s.mean += x / n;
      s.norm += x * x;
      s.min = std::min(s.min, x), s.max = std::max(s.max, x);
      s.finite = s.finite && std::isfinite(x);
    }
    for (const double x : numbers_) s.std += (x - s.mean) * (x - s.mean) / n;
    s.std = std::sqrt(s.std), s.norm = std::sqrt(s.norm);
    return s;
  }
  Histogram histogram(int64_t bins) const override {
    const TensorStats s = stats();
    Histogram h{s.min, s.max, std::vector<int64_t>(static_cast<size_t>(bins))};
    for (const double x : numbers_) {
      const auto at = static_cast<int64_t>((x - s.min) / (s.max - s.min) * static_cast<double>(bins));
      ++h.counts[static_cast<size_t>(std::min(at, bins - 1))];
    }
    return h;
  }
  std::vector<double> values() const override { return numbers_; }
  std::unique_ptr<TensorView> slice(int64_t dim, int64_t begin, int64_t end) const override {
    int64_t inner = 1, outer = 1;
    for (size_t d = 0; d < shape_.size(); ++d)
      (static_cast<int64_t>(d) < dim ? outer : inner) *= static_cast<int64_t>(d) == dim ? 1 : shape_[d];
    const int64_t size = shape_[static_cast<size_t>(dim)];
    std::vector<double> part;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = begin * inner; i < end * inner; ++i)
        part.push_back(numbers_[static_cast<size_t>(o * size * inner + i)]);
    std::vector<int64_t> shape = shape_;
    shape[static_cast<size_t>(dim)] = end - begin;
    return std::make_unique<FakeTensor>(shape, part);
  }
  std::unique_ptr<TensorView> select(int64_t dim, int64_t at) const override {
    const std::vector<double> part = slice(dim, at, at + 1)->values();
    std::vector<int64_t> shape = shape_;
    shape.erase(shape.begin() + dim);
    return std::make_unique<FakeTensor>(shape, part);
  }
  /// Shapes that are alike, or a number beside a tensor.
  std::unique_ptr<TensorView> combined(TensorOp op, const TensorView& right) const override {
    const std::vector<double> other = right.values();
    if (other.size() != numbers_.size() && other.size() != 1 && numbers_.size() != 1)
      fail(ExitCode::kUsage, "[tensor] wanted shapes that fit");
    std::vector<double> result(std::max(other.size(), numbers_.size()));
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = combine(op, numbers_[numbers_.size() == 1 ? 0 : i], other[other.size() == 1 ? 0 : i]);
    return std::make_unique<FakeTensor>(numbers_.size() == 1 ? right.shape() : shape_, result,
                                        /*owned=*/true);
  }
  std::unique_ptr<TensorView> applied(TensorFunction function) const override {
    std::vector<double> result;
    for (const double x : numbers_)
      result.push_back(function == TensorFunction::kAbs    ? std::abs(x)
                       : function == TensorFunction::kNeg  ? -x
                       : function == TensorFunction::kSqrt ? std::sqrt(x)
                       : function == TensorFunction::kExp  ? std::exp(x)
                                                           : std::log(x));
    return std::make_unique<FakeTensor>(shape_, result, /*owned=*/true);
  }
  std::unique_ptr<TensorView> scalar(double value) const override {
    return std::make_unique<FakeTensor>(std::vector<int64_t>{}, std::vector<double>{value}, /*owned=*/true);
  }
  std::unique_ptr<TensorView> matrix() const override {
    return std::make_unique<FakeTensor>(std::vector<int64_t>{numel() / shape_.back(), shape_.back()},
                                        numbers_);
  }
  std::unique_ptr<TensorView> clone(bool) const override {
    return std::make_unique<FakeTensor>(shape_, numbers_, /*owned=*/true);
  }

 private:
  static double combine(TensorOp op, double a, double b) {
    switch (op) {
      case TensorOp::kAdd: return a + b;
      case TensorOp::kSub: return a - b;
      case TensorOp::kMul: return a * b;
      case TensorOp::kDiv: return a / b;
      case TensorOp::kPow: return std::pow(a, b);
      case TensorOp::kEq: return a == b ? 1 : 0;
      case TensorOp::kNe: return a != b ? 1 : 0;
      case TensorOp::kLt: return a < b ? 1 : 0;
      case TensorOp::kLe: return a <= b ? 1 : 0;
      case TensorOp::kGt: return a > b ? 1 : 0;
      case TensorOp::kGe: return a >= b ? 1 : 0;
    }
    return 0;
  }

  std::vector<int64_t> shape_;
  std::vector<double> numbers_;
  bool owned_;
};

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
      StepMetrics metrics;
      metrics.step = ++state_.train.step;
      metrics.tokens = state_.train.tokens += 64;
      metrics.loss = 1.0 / static_cast<double>(metrics.step);
      metrics.lr = pinned_.value_or(lr_at(metrics.step - 1)), metrics.grad_norm = 0.5, metrics.step_s = 0.25;
      metrics.tokens_per_s = 256;
      state_.last = metrics;
      if (display_) display_->step(metrics, true);
      done.push_back(metrics);
    }
    return done;
  }
  void run_for(const Duration& length) override { step(static_cast<int64_t>(length.value)); }
  int fit() override { return step(facts_.run.total_steps), 0; }
  std::optional<EvalResults> evaluate(const std::string& set) override {
    EvalResults results = {{"c4", eval_result(96 * 1.0, 96, 0.25)},
                           {"code", eval_result(32 * 5.0, 32, 0.25)}};
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
