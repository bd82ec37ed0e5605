// Silences the live view when the run ends, so that the prompt has the terminal.
#include "host/repl/post_mortem.h"

#include <unistd.h>

#include "bindings/run/lua_callbacks.h"
#include "host/engine.h"
#include "host/repl/in_step.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/standard_terminal.h"
#include "host/start/start_run.h"
#include "trainer/base/secrets.h"
#include "trainer/hub/hub_pins.h"
#include "trainer/rendezvous/rank_cores.h"
#include "trainer/session/train_to_end.h"

namespace tycho {
namespace {

constexpr double kPatience_s = 1800;  // for ranks that hold a failed run

/// The live view of a run; silent after its end, when the REPL has the terminal.
class ViewOfRun final : public Reporter {
 public:
  explicit ViewOfRun(std::unique_ptr<Reporter> view) : view_(std::move(view)) {}
  void run_start(const RunInfo& run) override { view_->run_start(run); }
  void step(const StepMetrics& metrics, bool record) override {
    if (view_) view_->step(metrics, record);
  }
  void metric(int64_t step, const std::string& name, double value) override {
    if (view_) view_->metric(step, name, value);
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    if (view_) view_->event(kind, text, facts);
  }
  void run_end(const std::string& reason, std::optional<ExitCode> failure) override {
    if (view_) view_->run_end(reason, failure);
    view_.reset();
  }

 private:
  std::unique_ptr<Reporter> view_;
};

/// Returns the ranks when all of them still have the failed run; null when only this one does.
InStep* still_there(InStep* ranks) {
  if (ranks == nullptr) return nullptr;
  try {
    ranks->together([] {});
    return ranks;
  } catch (const Error& error) {
    if (ranks->rank() != 0) throw;
    fmt::print("{}\n", without_secrets(error.what()));
    return nullptr;
  }
}

}  // namespace

bool wants_to_look(const std::string& on_error, int rank) {
  if (on_error == "stop") return false;
  if (on_error != "repl") fail(ExitCode::kUsage, "[run] --on-error must be stop or repl, got {}", on_error);
  if (rank == 0 && (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0))
    fail(ExitCode::kUsage, "[run] --on-error repl needs a terminal; leave it out if there is none");
  return true;
}

int run_then_look(ResolvedRecipe recipe, const ReplOptions& repl, const RunOptions& options) {
  never_wait_for_readers();
  const StopFlag& stop = stop_on_signals(!options.plain && repl.place.rank == 0 && can_redraw());
  auto view = std::make_unique<ViewOfRun>(options.plain ? make_plain_reporter(STDOUT_FILENO)
                                                        : make_terminal_reporter(STDOUT_FILENO));
  const EngineApi& engine = open_engine(threads_of_rank(recipe.config.threads, repl.place));
  std::unique_ptr<InStep> ranks;
  if (repl.place.num_ranks > 1) {
    ranks = std::make_unique<InStep>(engine, repl.place, kPatience_s, stop);
    const HubPins commits = ranks->hear(hub_pins()).get<HubPins>();
    const int exit = ranks->together([&] {
      if (commits == hub_pins()) return;
      ChosenRecipe own = with_commits(commits, repl.recipe);
      fmt::print(stderr, "{}", own.text);
      recipe = std::move(own.recipe);
    });
    if (exit != 0) return exit;
  }
  if (repl.place.rank == 0) std::fputs(folder_warning(recipe).c_str(), stderr);
  LuaCallbacks callbacks(recipe);
  StandardTerminal terminal(repl.place.rank, !options.plain && can_redraw());
  callbacks.set_terminal(&terminal);
  RunRequest request = make_run_request(recipe, repl.recipe.pins, repl.argv, options.until);
  request.paranoid = options.paranoid;
  request.force = options.force;
  request.callbacks = &callbacks;
  if (ranks != nullptr) request.place = ranks->meeting_place("run");
  std::unique_ptr<TrainingSession> session = engine.open(request, std::move(view), stop);
  try {
    return train_to_end(*session);
  } catch (const Error& error) {
    if (repl.place.rank == 0) fmt::print("\n{}\n", without_secrets(error.what()));
    run_repl_loop(repl, {std::move(session), callbacks, error.what(), still_there(ranks.get())});
    return static_cast<int>(error.code());
  }
}

}  // namespace tycho
