// A run that is looked at when it fails.
#include "host/repl/post_mortem.h"

#include <unistd.h>

#include "bindings/run/lua_callbacks.h"
#include "host/engine.h"
#include "host/signals.h"
#include "host/start_run.h"
#include "trainer/session/train_to_end.h"

namespace tycho {
namespace {

/// The live view of a run; silent after its end, when the terminal is the REPL's.
class ViewOfRun final : public Reporter {
 public:
  explicit ViewOfRun(std::unique_ptr<Reporter> view) : view_(std::move(view)) {}
  void run_start(const RunInfo& run) override { view_->run_start(run); }
  void step(const StepMetrics& metrics, bool record) override {
    if (view_) view_->step(metrics, record);
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    if (view_) view_->event(kind, text, facts);
  }
  void run_end(const std::string& reason) override {
    if (view_) view_->run_end(reason);
    view_.reset();
  }

 private:
  std::unique_ptr<Reporter> view_;
};

}  // namespace

int run_then_look(const ResolvedRecipe& recipe, const ReplOptions& repl, bool plain,
                  const std::string& until) {
  const StopFlag& stop = stop_on_signals();
  auto view = std::make_unique<ViewOfRun>(plain ? make_plain_reporter(STDOUT_FILENO)
                                                : make_terminal_reporter(STDOUT_FILENO));
  LuaCallbacks callbacks(recipe);
  RunRequest request = make_run_request(recipe, repl.recipe.pins, repl.argv, until);
  request.callbacks = &callbacks;
  std::unique_ptr<TrainingSession> session =
      open_engine(static_cast<int>(recipe.config.threads)).open(request, std::move(view), stop);
  try {
    return train_to_end(*session);
  } catch (const Error& error) {
    fmt::print("\n{}\n", error.what());
    run_repl_loop(repl, {std::move(session), callbacks, error.what()});
    return static_cast<int>(error.code());
  }
}

}  // namespace tycho
