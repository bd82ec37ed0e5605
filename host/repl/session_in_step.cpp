// A session that synchronises with the other ranks before each collective call.
#include "host/repl/session_in_step.h"

#include <utility>

namespace tycho {
namespace {

class SessionInStep final : public TrainingSession {
 public:
  SessionInStep(std::unique_ptr<TrainingSession> session, InStep& ranks)
      : session_(std::move(session)), ranks_(ranks) {}

  const SessionFacts& facts() const override { return session_->facts(); }
  SessionState state() const override { return session_->state(); }
  const std::vector<ParamInfo>& params() const override { return session_->params(); }

  // All ranks queue the same: the next call says what was queued before it.
  void command(Command command) override {
    ranks_.refuse_alone("cmd." + command.name);
    queued_ += " after " + command_text(command);
    session_->command(std::move(command));
  }
  std::vector<StepMetrics> step(int64_t n) override {
    call(fmt::format("trainer:step({})", n));
    return session_->step(n);
  }
  void run_for(const Duration& length) override {
    call(fmt::format("trainer:run(\"{}\")", length.str()));
    session_->run_for(length);
  }
  int fit() override {
    call("fit");
    return session_->fit();
  }
  std::optional<EvalResults> evaluate(const std::string& set) override {
    call(fmt::format("trainer:eval({})", set.empty() ? "" : '"' + set + '"'));
    return session_->evaluate(set);
  }
  SavedCheckpoint save() override {
    call("trainer:save()");
    return session_->save();
  }
  SavedCheckpoint load(const std::string& path) override {
    call(fmt::format("ckpt:load(\"{}\")", path));
    return session_->load(path);
  }
  void close(const std::string& reason, std::optional<ExitCode> failure) override {
    ranks_.call("trainer:close()");
    session_->close(reason, failure);
  }

  std::unique_ptr<TensorView> weight(int64_t param) override {
    look(params().at(static_cast<size_t>(param)).name);
    return session_->weight(param);
  }
  std::unique_ptr<TensorView> grad(int64_t param) override {
    look("the gradient of " + params().at(static_cast<size_t>(param)).name);
    return session_->grad(param);
  }
  std::unique_ptr<TensorView> moment(int64_t param, const std::string& name) override {
    look(name + " of " + params().at(static_cast<size_t>(param)).name);
    return session_->moment(param, name);
  }
  OptimizerState optimizer() const override { return session_->optimizer(); }
  double lr_at(int64_t steps_done) const override { return session_->lr_at(steps_done); }
  std::optional<std::string> generate(const std::string& prompt, const TextOptions& options,
                                      const std::function<void(const std::string&)>& emit) override {
    look("model:generate");
    return session_->generate(prompt, options, emit);
  }
  std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& prompt,
                                                      const TextOptions& options) override {
    look("model:generate");
    return session_->generate_tokens(prompt, options);
  }
  std::unique_ptr<TensorView> logits(const std::vector<int32_t>& tokens, bool every_position) override {
    look("model:logits");
    return session_->logits(tokens, every_position);
  }
  std::unique_ptr<TensorView> attention(const std::vector<int32_t>& tokens, int64_t layer) override {
    look("model:attention");
    return session_->attention(tokens, layer);
  }
  std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& tokens) override {
    look("model:activations");
    return session_->activations(tokens);
  }
  std::vector<int32_t> encode(const std::string& text) const override { return session_->encode(text); }
  std::string decode(const std::vector<int32_t>& tokens) const override { return session_->decode(tokens); }
  void profile_begin() override { session_->profile_begin(); }
  Json profile_end() override { return session_->profile_end(); }
  ProfileState profile_state() const override { return session_->profile_state(); }
  std::vector<PeekedSequence> peek(int64_t n) const override { return session_->peek(n); }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    session_->event(kind, text, facts);
  }
  void metric(const std::string& name, double value) override { session_->metric(name, value); }
  MemoryUse memory() const override { return session_->memory(); }

 private:
  void call(const std::string& what) {
    ranks_.call(what + queued_);
    queued_.clear();
  }

  // Parameters that ranks share come together for it.
  void look(const std::string& what) {
    if (facts().is_sharded) call(what);
  }

  std::unique_ptr<TrainingSession> session_;
  InStep& ranks_;
  std::string queued_;  // commands since the last call
};

}  // namespace

std::unique_ptr<TrainingSession> keep_in_step(std::unique_ptr<TrainingSession> session, InStep& ranks) {
  return std::make_unique<SessionInStep>(std::move(session), ranks);
}

}  // namespace tycho
