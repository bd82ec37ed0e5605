// Between the terminal and the REPL's Lua.
#include "host/repl/repl.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "bindings/define/native.h"
#include "bindings/define/watch.h"
#include "bindings/run/lua_callbacks.h"
#include "host/engine.h"
#include "host/repl/host_functions.h"
#include "host/repl/line_editor.h"
#include "host/signals.h"
#include "host/start_run.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

constexpr LuaLimits kNoLimits = {.max_instructions = int64_t{1} << 62, .max_seconds = 1e18};

// What escapes the REPL itself is a mistake of its own.
constexpr bool kTrace = true;

bool can_redraw() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

struct Answer {
  std::string status;  // "ok", "incomplete", "quit", "error"
  int exit = 0;
};

class Repl {
 public:
  Repl(const ReplOptions& options, bool interactive)
      : options_(options),
        interactive_(interactive),
        interrupts_(interactive),
        history_(interactive && options.keep_history ? history_path() : ""),
        progress_(interactive && can_redraw()),
        host_{objects_, history_, progress_, [this](const Json& resolved) { return open(resolved); },
              [this] { return newest_callbacks_ != nullptr ? newest_callbacks_->take_failure() : Json(); }} {
    lua_State* L = state_.get();
    objects_.attach(L);
    open_library(L);
    open_repl_host(L, host_);
  }

  /// The recipe's report or the banner. Throws Error (kRecipe) with the report when a script's recipe is
  /// broken.
  void start() {
    lua_State* L = state_.get();
    const LuaWatch watch(L, kNoLimits);
    lua_getglobal(L, "require");
    lua_pushstring(L, "tycho.repl");
    call_lua(L, 1, 1);
    lua_getfield(L, -1, "new");
    push_json(L, request());
    call_lua(L, 1, 3, kTrace);
    std::string text = lua_tostring(L, -2);
    if (!interactive_ && lua_toboolean(L, -1) == 0) {
      text.erase(text.find_last_not_of('\n') + 1);  // main ends the line
      throw Error(text, ExitCode::kRecipe);
    }
    std::fputs(text.c_str(), interactive_ ? stdout : stderr);
    lua_pop(L, 2);
    lua_setfield(L, LUA_REGISTRYINDEX, kRepl);
  }

  /// The run that failed becomes the one that is open.
  void look_at(FailedRun failed) {
    lua_State* L = state_.get();
    const LuaWatch watch(L, kNoLimits);
    newest_callbacks_ = &failed.callbacks;
    push_method("bind");
    host_.adopt(L, std::move(failed.session));
    call_lua(L, 2, 0, kTrace);
    push_method("look_at");
    lua_pushlstring(L, failed.message.data(), failed.message.size());
    call_lua(L, 2, 0, kTrace);
  }

  Answer enter(const std::string& text) {
    lua_State* L = state_.get();
    Answer answer;
    {
      const LuaWatch watch(L, kNoLimits);
      push_method("entry");
      lua_pushlstring(L, text.data(), text.size());
      call_lua(L, 2, 2, kTrace);
    }
    answer.status = lua_tostring(L, -2);
    answer.exit = static_cast<int>(lua_tointeger(L, -1));
    lua_pop(L, 2);
    progress_.clear();
    std::fflush(stdout);
    interrupts_.stop() = 0;
    return answer;
  }

  Completions complete(const std::string& line) {
    Completions found;
    lua_State* L = state_.get();
    const LuaWatch watch(L, kNoLimits);
    try {
      push_method("complete");
      lua_pushlstring(L, line.data(), line.size());
      call_lua(L, 2, 2, kTrace);
      if (lua_isstring(L, -1) != 0) found.hint = lua_tostring(L, -1);
      lua_pop(L, 1);
      found.words = read_json(L, lua_gettop(L)).get<std::vector<std::string>>();
      lua_pop(L, 1);
    } catch (const std::exception&) {  // tab on something odd offers nothing
      lua_settop(L, 0);
    }
    return found;
  }

  /// Entries of a person. Returns the exit code.
  int converse() {
    LineEditor editor([this](const std::string& line) { return complete(line); });
    for (const std::string& entry : history_.earlier()) editor.remember(entry);
    std::string text, line;
    bool asked = false;  // whether to leave an open run
    for (;;) {
      const LineEditor::End end = editor.read(text.empty() ? "> " : ">> ", line);
      if (end == LineEditor::End::kInterrupted) {
        text.clear();
        continue;
      }
      if (end == LineEditor::End::kClosed) {
        std::printf("\n");
        if (!may_leave(asked)) continue;
        return 0;
      }
      asked = false;
      text += (text.empty() ? "" : "\n") + line;
      const double begun = monotonic_seconds();
      const Answer answer = enter(text);
      if (answer.status == "incomplete") continue;
      if (text.find_first_not_of(" \t\n") != std::string::npos) {
        editor.remember(text);
        history_.add(text, monotonic_seconds() - begun);
      }
      text.clear();
      if (answer.status == "quit" && may_leave(asked)) return 0;
    }
  }

  /// Entries of a script. Ends at the first error.
  int run_script(std::istream& in) {
    std::string text;
    for (std::string line; std::getline(in, line);) {
      text += (text.empty() ? "" : "\n") + line;
      const Answer answer = enter(text);
      if (answer.status == "incomplete") continue;
      text.clear();
      if (answer.status == "quit") return 0;
      if (answer.status == "error") return answer.exit;
    }
    if (text.empty()) return 0;
    std::fputs("[repl] the script ends inside an entry\n", stderr);
    return static_cast<int>(ExitCode::kRecipe);
  }

 private:
  static constexpr const char* kRepl = "tycho.repl";

  void push_method(const char* name) {
    lua_State* L = state_.get();
    lua_getfield(L, LUA_REGISTRYINDEX, kRepl);
    lua_getfield(L, -1, name);
    lua_insert(L, -2);
  }

  Json request() const {
    Json request = recipe_request_json(options_.recipe);
    request["interactive"] = interactive_;
    return request;
  }

  std::unique_ptr<TrainingSession> open(const Json& resolved) {
    const ResolvedRecipe recipe = to_resolved(resolved, options_.recipe.origins);
    RunRequest request = make_run_request(recipe, options_.recipe.pins, options_.argv);
    if (!recipe.config.callbacks.empty() || recipe.config.scheduler.is<DynamicScheduleConfig>()) {
      callbacks_.push_back(std::make_unique<LuaCallbacks>(in_own_state(recipe)));
      request.callbacks = newest_callbacks_ = callbacks_.back().get();
    }
    const EngineApi& engine = open_engine(static_cast<int>(recipe.config.threads));
    return engine.open(request, make_repl_reporter(progress_), interrupts_.stop());
  }

  /// The recipe once more, in a Lua state where its callbacks run apart from the prompt.
  static ResolvedRecipe in_own_state(const ResolvedRecipe& recipe) {
    RecipeRequest request = {.file = "recipe.lua", .files = {{"recipe.lua", recipe.lua}}, .only_files = true};
    std::vector<std::string> names;
    for (const auto& [name, text] : recipe.sources) names.push_back(name);
    for (const auto& [name, place] : source_places(names)) request.files[place] = recipe.sources.at(name);
    return resolve_recipe(request);
  }

  /// Asks once when a run is open.
  bool may_leave(bool& asked) {
    if (!host_.is_open() || asked) return true;
    asked = true;
    const int64_t step = host_.session->session->state().train.step;
    std::printf("a run is open at step %lld; trainer:save() keeps it. ^D again leaves\n",
                static_cast<long long>(step));
    return false;
  }

  const ReplOptions& options_;
  bool interactive_;
  InterruptRepl interrupts_;
  // Of every run that was opened: its session calls them until Lua has dropped it.
  std::vector<std::unique_ptr<LuaCallbacks>> callbacks_;
  LuaCallbacks* newest_callbacks_ = nullptr;
  Objects objects_;  // finalisers of the state come back to it
  ReplHistory history_;
  ProgressLine progress_;
  ReplHost host_;
  LuaState state_;
};

}  // namespace

namespace {

int run_loop(const ReplOptions& options, std::optional<FailedRun> failed) {
  const bool interactive = options.entries.empty() && isatty(STDIN_FILENO) != 0;
  if (interactive)
    std::printf("tycho %s  LuaJIT, interpreted      ?help  ;shell  :commands  ^D ends\n", TYCHO_VERSION);
  Repl repl(options, interactive);
  repl.start();
  if (failed) repl.look_at(std::move(*failed));
  if (interactive) return repl.converse();
  if (options.entries.empty()) return repl.run_script(std::cin);
  for (const std::string& entry : options.entries) {
    std::istringstream lines(entry);
    if (const int code = repl.run_script(lines); code != 0) return code;
  }
  return 0;
}

}  // namespace

int run_repl_loop(const ReplOptions& options) { return run_loop(options, std::nullopt); }

int run_repl_loop(const ReplOptions& options, FailedRun failed) {
  return run_loop(options, std::move(failed));
}

}  // namespace tycho
