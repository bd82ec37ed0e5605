// A session without a model, for callbacks: it has a clock and a record, and says of all else that it is not
// there.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/command.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/session/eval_result.h"
#include "trainer/session/session.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

class SessionWithoutModel final : public TrainingSession {
 public:
  SessionWithoutModel(SessionFacts facts, OptimizerState optimizer)
      : facts_(std::move(facts)), optimizer_(std::move(optimizer)) {}

  SessionState now;
  std::map<std::string, double> metrics;  // newest value of each name
  Json events = Json::array();            // [{kind, text}]

  const SessionFacts& facts() const override { return facts_; }
  SessionState state() const override { return now; }
  const std::vector<ParamInfo>& params() const override { return params_; }
  OptimizerState optimizer() const override { return optimizer_; }
  double lr_at(int64_t /*steps_done*/) const override { return optimizer_.lr; }
  ProfileState profile_state() const override { return {"off", ""}; }
  MemoryUse memory() const override { return {}; }
  void event(const std::string& kind, const std::string& text, const Json& /*facts*/) override {
    events.push_back({{"kind", kind}, {"text", text}});
  }
  void metric(const std::string& name, double value) override { metrics[name] = value; }
  void close(const std::string& /*reason*/, std::optional<ExitCode> /*failure*/) override {}

  void command(Command /*command*/) override { refuse("trainer"); }
  std::vector<StepMetrics> step(int64_t /*n*/) override { refuse("trainer:step"); }
  void run_for(const Duration& /*length*/) override { refuse("trainer:run"); }
  int fit() override { refuse("trainer"); }
  std::optional<EvalResults> evaluate(const std::string& /*set*/) override { refuse("trainer:eval"); }
  SavedCheckpoint save() override { refuse("trainer:save"); }
  SavedCheckpoint load(const std::string& /*path*/) override { refuse("ckpt:load"); }
  std::unique_ptr<TensorView> weight(int64_t /*param*/) override { refuse("model"); }
  std::unique_ptr<TensorView> grad(int64_t /*param*/) override { refuse("model"); }
  std::unique_ptr<TensorView> moment(int64_t /*param*/, const std::string& /*name*/) override {
    refuse("opt");
  }
  std::optional<std::string> generate(const std::string& /*prompt*/, const TextOptions& /*options*/,
                                      const std::function<void(const std::string&)>& /*emit*/) override {
    refuse("model:generate");
  }
  std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& /*prompt*/,
                                                      const TextOptions& /*options*/) override {
    refuse("model:generate");
  }
  std::unique_ptr<TensorView> logits(const std::vector<int32_t>& /*tokens*/,
                                     bool /*every_position*/) override {
    refuse("model:logits");
  }
  std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& /*tokens*/) override {
    refuse("model:activations");
  }
  std::unique_ptr<TensorView> attention(const std::vector<int32_t>& /*tokens*/, int64_t /*layer*/) override {
    refuse("model:attention");
  }
  std::vector<int32_t> encode(const std::string& /*text*/) const override { refuse("model:encode"); }
  std::string decode(const std::vector<int32_t>& /*tokens*/) const override { refuse("model:decode"); }
  void profile_begin() override { refuse("profile"); }
  Json profile_end() override { refuse("profile"); }
  std::vector<PeekedSequence> peek(int64_t /*n*/) const override { refuse("data:peek"); }

 private:
  [[noreturn]] static void refuse(const char* what) {
    fail(ExitCode::kUsage,
         "[fake run] expected a callback that needs no model and no data, got one that uses {}: "
         "test it with tycho run on a few steps",
         what);
  }

  SessionFacts facts_;
  OptimizerState optimizer_;
  std::vector<ParamInfo> params_;
};

}  // namespace tycho
