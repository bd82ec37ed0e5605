// The real runner and the real objects of callbacks, over a session that computes nothing.
#include "host/test/fake_run.h"

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/import/import.h"
#include "bindings/run/lua_callbacks.h"
#include "host/test/session_without_model.h"
#include "trainer/base/field_types.h"
#include "trainer/base/nearest.h"
#include "trainer/callbacks/runner.h"
#include "trainer/metrics/reporter.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

constexpr int64_t kNumSamples = 1000;  // of the data set that a fake run does not read

class OneRank final : public Dist {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void enter() override {}
  void leave(bool /*failed*/) override {}
  bool told_of_failure() const override { return false; }
  std::vector<std::vector<double>> gather(const std::vector<double>& values,
                                          const std::string& /*place*/) override {
    return {values};
  }
};

/// Records the runner's events about callbacks together with the callbacks' own events.
class SessionReporter final : public Reporter {
 public:
  explicit SessionReporter(SessionWithoutModel& session) : session_(session) {}
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    session_.event(kind, text, facts);
  }

 private:
  SessionWithoutModel& session_;
};

RunInfo info_of(const ResolvedRecipe& recipe) {
  RunInfo info;
  info.run_name = recipe.config.run_name;
  info.run_dir = "runs/" + info.run_name;
  info.num_samples = kNumSamples;
  info.total_steps =
      static_cast<int64_t>(in_steps(recipe.config.max_duration, recipe.config, 0, kNumSamples));
  info.first_step = 1;
  return info;
}

SessionWithoutModel session_of(const ResolvedRecipe& recipe, const RunInfo& info) {
  OptimizerState optimizer;
  optimizer.config = recipe.tree.at("optimizer");
  optimizer.lr = optimizer.config.value("lr", 0.0);
  optimizer.clip_norm = recipe.config.clip.norm;
  optimizer.groups.resize(1);
  SessionFacts facts;
  facts.run = info;
  facts.recipe = recipe.tree;
  return SessionWithoutModel(std::move(facts), std::move(optimizer));
}

/// Sets the numbers of a step that a spec gives. Throws Error (kUsage) for an unknown name.
void set_metrics(const Json& numbers, StepMetrics& metrics) {
  std::vector<std::string> names = {"eval", "event"};
  for_each_metric(metrics, [&](const auto& field, const auto& /*old*/) {
    names.emplace_back(field.name);
    if (!numbers.contains(field.name)) return;
    auto& value = metrics.*field.member;
    if constexpr (std::is_integral_v<std::remove_reference_t<decltype(value)>>)
      value = numbers.at(field.name).template get<int64_t>();
    else
      value = numbers.at(field.name).template get<double>();
  });
  for (const auto& [name, value] : numbers.items())
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ExitCode::kUsage, "[fake run] expected a number of a step, got {}{}", name,
           did_you_mean(name, names));
}

Event event_of(const std::string& name) {
  std::vector<std::string> names;
  for (const EventEntry& entry : kEvents) {
    if (name == entry.name) return entry.event;
    names.emplace_back(entry.name);
  }
  fail(ExitCode::kUsage, "[fake run] expected an event, got {}{}", name, did_you_mean(name, names));
}

EvalScore score_of(const Json& json, int64_t step) {
  EvalScore score = {.loss = json.value("loss", 0.0),
                     .perplexity = json.value("perplexity", 0.0),
                     .tokens = json.value("tokens", int64_t{0}),
                     .step = step};
  if (json.contains("bits_per_byte")) score.bits_per_byte = json.at("bits_per_byte").get<double>();
  return score;
}

class FakeRun {
 public:
  explicit FakeRun(const RecipeRequest& request)
      : recipe_(resolve_recipe(request)),
        info_(info_of(recipe_)),
        session_(session_of(recipe_, info_)),
        reporter_(session_),
        source_(recipe_) {
    source_.set_session(&session_);
    runner_ = std::make_unique<CallbackRunner>(
        source_.callbacks(),
        RunnerContext{.reporter = reporter_,
                      .gather = [](const std::string& mine) { return std::vector<std::string>{mine}; },
                      .dist = &dist_,
                      .in_steps =
                          [this](const Duration& length) {
                            return in_steps(length, recipe_.config, info_.total_steps, kNumSamples);
                          }});
  }
  ~FakeRun() { source_.set_session(nullptr); }
  FakeRun(const FakeRun&) = delete;
  FakeRun& operator=(const FakeRun&) = delete;

  /// Announces all events of a step in order.
  Json step(const Json& numbers) {
    for (const EventEntry& entry : kEvents)
      if (entry.in_step) announce(entry.event, Json::object());
    ++metrics_.step;
    set_metrics(numbers, metrics_);
    session_.now.train.step = session_.now.recorded_step = metrics_.step;
    session_.now.last = metrics_;
    announce(Event::kBatchEnd, Json::object());
    return boundary();
  }

  Json fire(const std::string& event, const Json& given) {
    Json numbers = given, facts = Json::object();
    for (const char* fact : {"tag", "path", "kind", "message", "reason", "signal"})
      if (given.contains(fact)) facts[fact] = given.at(fact), numbers.erase(fact);
    set_metrics(numbers, metrics_);
    if (given.contains("eval")) remember(given.at("eval"));
    announce(event_of(event), facts);
    return boundary();
  }

  Json state() const { return runner_->state(); }

 private:
  void announce(Event event, const Json& facts) {
    runner_->announce({.event = event,
                       .metrics = metrics_,
                       .run = info_,
                       .eval = evals_.total ? &evals_ : nullptr,
                       .facts = facts});
  }

  void keep(std::optional<EvalRecord>& record, const EvalScore& score) {
    if (!record) record = EvalRecord{score, score};
    record->last = score;
    if (score.loss < record->best.loss) record->best = score;
  }

  void remember(const Json& eval) {
    keep(evals_.total, score_of(eval, metrics_.step));
    for (const auto& [name, set] : eval.items()) {
      if (!set.is_object()) continue;
      std::optional<EvalRecord> record;
      if (evals_.sets.contains(name)) record = evals_.sets.at(name);
      keep(record, score_of(set, metrics_.step));
      evals_.sets[name] = *record;
    }
  }

  /// Returns what happened since the last boundary. Throws Error (kRecipe) for a callback that failed.
  Json boundary() {
    const Agreement agreed = runner_->boundary(metrics_.step, {}, 0);
    if (!agreed.failure.empty()) fail(ExitCode::kRecipe, "[fake run] {}", agreed.failure);
    Json commands = Json::array();
    for (const Command& command : agreed.commands) {
      if (command.name == "enable" || command.name == "disable")
        runner_->enable(command.arguments.at("callback"), command.name == "enable");
      commands.push_back(
          {{"name", command.name}, {"arguments", command.arguments}, {"text", command_text(command)}});
    }
    Json all = {{"commands", commands},
                {"metrics", session_.metrics},
                {"events", session_.events},
                {"step", metrics_.step}};
    return all;
  }

  const ResolvedRecipe recipe_;
  const RunInfo info_;
  SessionWithoutModel session_;
  SessionReporter reporter_;
  OneRank dist_;
  LuaCallbacks source_;
  StepMetrics metrics_;
  EvalRecords evals_;
  std::unique_ptr<CallbackRunner> runner_;
};

/// The runs of one Lua state.
struct FakeRuns {
  std::vector<std::unique_ptr<FakeRun>> all;
};

FakeRuns& runs_of(lua_State* L) { return *static_cast<FakeRuns*>(lua_touserdata(L, lua_upvalueindex(1))); }

FakeRun& run_at(lua_State* L) {
  const auto number = static_cast<size_t>(luaL_checkinteger(L, 1));
  return *runs_of(L).all.at(number - 1);
}

/// open({ file, text, arguments }) -> the run's number
int open_run(lua_State* L) {
  return protect(L, [&] {
    const Json given = read_json(L, 1);
    RecipeRequest request = {.file = given.at("file"), .quiet = true};
    if (given.contains("text")) request.files[request.file] = given.at("text");
    int number = 0;
    for (const Json& one : given.at("arguments")) request.pins.push_back({++number, one});
    import_request(request);
    runs_of(L).all.push_back(std::make_unique<FakeRun>(request));
    return lua_pushinteger(L, static_cast<lua_Integer>(runs_of(L).all.size())), 1;
  });
}

/// step(run, numbers) -> { commands, metrics, events, step }
int step(lua_State* L) {
  return protect(L, [&] { return push_json(L, run_at(L).step(read_json(L, 2))), 1; });
}

/// fire(run, event, numbers) -> { commands, metrics, events, step }
int fire(lua_State* L) {
  return protect(L, [&] { return push_json(L, run_at(L).fire(string_argument(L, 2), read_json(L, 3))), 1; });
}

/// state(run) -> { callback = state }
int state(lua_State* L) {
  return protect(L, [&] { return push_json(L, run_at(L).state()), 1; });
}

int forget(lua_State* L) {
  static_cast<FakeRuns*>(lua_touserdata(L, 1))->~FakeRuns();
  return 0;
}

int open_module(lua_State* L) {
  new (lua_newuserdata(L, sizeof(FakeRuns))) FakeRuns;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, forget);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_createtable(L, 0, 4);
  using Function = std::pair<const char*, lua_CFunction>;
  for (const auto& [name, function] :
       {Function{"open", open_run}, {"step", step}, {"fire", fire}, {"state", state}}) {
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
  }
  return 1;
}

}  // namespace

void open_fake_runs(lua_State* L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, open_module);
  lua_setfield(L, -2, "tycho.fake_run.host");
  lua_pop(L, 2);
}

}  // namespace tycho
