// Calls the recipe's functions during training.
#include "bindings/run/lua_callbacks.h"

#include <chrono>
#include <limits>
#include <optional>
#include <string_view>

#include "bindings/define/watch.h"
#include "bindings/run/drawing.h"
#include "bindings/run/session_objects.h"
#include "trainer/base/field_types.h"
#include "trainer/base/hash.h"
#include "trainer/base/seconds_since.h"
#include "trainer/base/secrets.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

constexpr double kGrace_s = 0.02;  // a call that is about to end when Ctrl-C is pressed ends by itself
constexpr double kScheduleLimit_s = 10, kEntryLimit_s = 10, kSetUpLimit_s = 60;
constexpr double kWarn_s = 5;
constexpr int kKeptEntryKiB = 16 << 10;  // of garbage of operators that may wait for the next entry
constexpr const char* kSchedule = "the schedule";

CallbackKind kind_of(const std::string& name) {
  if (name == "control") return CallbackKind::kControl;
  return name == "everywhere" ? CallbackKind::kEverywhere : CallbackKind::kObserve;
}

const Class& ctx_class(CallbackKind kind) {
  switch (kind) {
    case CallbackKind::kObserve: return observe_ctx_class();
    case CallbackKind::kControl: return control_ctx_class();
    case CallbackKind::kEverywhere: return everywhere_ctx_class();
  }
  return observe_ctx_class();
}

void push_text(lua_State* L, const std::string& text) { lua_pushlstring(L, text.data(), text.size()); }

/// Returns a seed for math.random that depends only on the text.
uint64_t seed_of(const std::string& text) { return std::stoull(hash_hex(text).substr(0, 12), nullptr, 16); }

}  // namespace

class LuaCallbacks::Code final : public CallbackCode {
 public:
  Code(LuaCallbacks& of, std::string name, CallbackKind kind, const Json& events, double limit_s)
      : of_(of), name_(std::move(name)), kind_(kind), limit_s_(limit_s), seed_(of.seed_ + seed_of(name_)) {
    for (const auto& [text, event] : enum_names(Event{}))
      for (const Json& handled : events)
        if (handled == text) {
          handled_ |= 1u << static_cast<unsigned>(event);
          calls_[event] = fmt::format("{} of \"{}\"", text, name_);
        }
  }

  bool handles(Event event) const override { return (handled_ >> static_cast<unsigned>(event) & 1u) != 0; }

  void run(const EventInfo& info, CallbackPort& port) override {
    lua_State* L = of_.L_;
    push_text(L, name_);
    lua_pushstring(L, enum_name(info.event));
    of_.push_context(calls_.at(info.event), kind_, info, port);
    // math.random gives the same again when a run is resumed.
    lua_pushnumber(L, static_cast<double>(seed_ + 16 * static_cast<uint64_t>(info.metrics.step) +
                                          static_cast<uint64_t>(info.event)));
    of_.call("run", 4, 0, limit_s_, calls_.at(info.event).c_str());
  }

  Json state() const override {
    push_text(of_.L_, name_);
    of_.call("state", 1, 1, limit_s_, name_.c_str());
    Json state = read_json(of_.L_, -1);
    lua_pop(of_.L_, 1);
    return state.empty() ? Json(nullptr) : state;
  }

  void set_state(const Json& state) override {
    push_text(of_.L_, name_);
    push_json(of_.L_, state);
    of_.call("set_state", 2, 0, limit_s_, name_.c_str());
  }

 private:
  LuaCallbacks& of_;
  std::string name_;
  CallbackKind kind_;
  double limit_s_;
  uint64_t seed_;
  uint32_t handled_ = 0;
  std::map<Event, std::string> calls_;  // name of the call for each event
};

class LuaCallbacks::Schedule final : public ScheduleCode {
 public:
  explicit Schedule(LuaCallbacks& of) : of_(of) {}

  double factor(int64_t steps_done, int64_t total_steps, std::optional<double> last_loss) override {
    Json moment = {{"step", steps_done},
                   {"total", total_steps},
                   {"frac", static_cast<double>(steps_done) / static_cast<double>(total_steps)}};
    if (last_loss) moment["loss"] = *last_loss;
    push_json(of_.L_, moment);
    of_.call("factor", 1, 1, kScheduleLimit_s, kSchedule);
    const double factor = lua_tonumber(of_.L_, -1);
    lua_pop(of_.L_, 1);
    return factor;
  }

  Json state() const override {
    lua_pushnil(of_.L_);
    of_.call("state", 1, 1, kScheduleLimit_s, kSchedule);
    Json state = read_json(of_.L_, -1);
    lua_pop(of_.L_, 1);
    return state;
  }

  void set_state(const Json& state) override {
    lua_pushnil(of_.L_);
    push_json(of_.L_, state);
    of_.call("set_state", 2, 0, kScheduleLimit_s, kSchedule);
  }

 private:
  LuaCallbacks& of_;
};

LuaCallbacks::LuaCallbacks(const ResolvedRecipe& recipe)
    : recipe_(recipe),
      state_(recipe.state),
      L_(state_->get()),
      session_(std::make_shared<SessionRef>()),
      context_(std::make_shared<CallbackContext>()),
      warn_([session = session_](const std::string& text) {
        if (session->session == nullptr) return;
        const std::string warning = text + "; training waits for it";
        const int rank = session->session->facts().rank;
        session->session->event("warning", warning, Json::object());
        // The record of another rank reaches rank 0 only with the next step, which this one holds up.
        if (rank != 0) fmt::print(stderr, "warning: rank {}: {}\n", rank, warning);
      }),
      dynamic_(recipe.config.scheduler.is<DynamicScheduleConfig>()) {
  limit_memory();
  objects_ = std::make_shared<Objects>();
  objects_->attach(L_);
  objects_->set_most(recipe_.config.lua_memory.value, ", the limit of lua_memory");
  open_drawing(L_);
  state_->keep(objects_);
  context_->session = session_;
  context_->commands = std::make_shared<CommandQueue>();
  context_->commands->add = [context = context_.get()](Command command) {
    context->port->commands.push_back(std::move(command));
  };
}

void LuaCallbacks::limit_memory() {
  const int64_t max_bytes = recipe_.config.lua_memory.value;
  lua_gc(L_, LUA_GCCOLLECT, 0);  // what reading the recipe has left does not count
  const int64_t kept_bytes = int64_t{lua_gc(L_, LUA_GCCOUNT, 0)} * 1024;
  if (kept_bytes > max_bytes)
    fail(ExitCode::kRecipe,
         "[callbacks] expected at most lua_memory = {} in use when training starts, got {} MiB that the "
         "recipe "
         "itself keeps: set lua_memory higher, or keep less in states and tables",
         recipe_.config.lua_memory.str(), kept_bytes >> 20);
  state_->set_max_bytes(max_bytes);
}

LuaCallbacks::~LuaCallbacks() {
  if (scope_) scope_->close();
}

std::vector<Callback> LuaCallbacks::callbacks() {
  Json events = Json::array();
  for (const EventEntry& entry : kEvents) events.push_back(entry.name);
  push_json(L_, events);
  push_json(L_, ctx_values());
  push_terminal();
  call("begin", 3, 1, kSetUpLimit_s, "the set-up of callbacks");
  const Json begun = read_json(L_, -1);
  lua_pop(L_, 1);
  seed_ = begun.at("seed").get<uint64_t>();
  std::vector<Callback> callbacks;
  for (const Json& entry : begun.at("callbacks")) {
    const std::string name = entry.at("name");
    const CallbackConfig& config = recipe_.config.callbacks.at(name);
    Callback callback{name, kind_of(entry.at("kind")), callback_options(config), nullptr};
    if (config.is<ObserveConfig>()) callback.ranks = config.as<ObserveConfig>().ranks;
    callback.code = std::make_unique<Code>(*this, name, callback.kind, entry.at("events"),
                                           callback.options.time_limit.value);
    callbacks.push_back(std::move(callback));
  }
  return callbacks;
}

std::unique_ptr<ScheduleCode> LuaCallbacks::schedule() {
  return dynamic_ ? std::make_unique<Schedule>(*this) : nullptr;
}

void LuaCallbacks::set_session(TrainingSession* session) {
  session_->session = session;
  if (visitor_) visitor_->set_session(session);
}

bool LuaCallbacks::has_session() const { return session_->session != nullptr; }

Json LuaCallbacks::take_failure() {
  call("take_failure", 0, 1, kEntryLimit_s, "the report of a failure");
  Json failure = read_json(L_, -1);
  lua_pop(L_, 1);
  return failure;
}

void LuaCallbacks::push_terminal() {
  lua_newtable(L_);
  for (const luaL_Reg& function : {luaL_Reg{"refusal", terminal_refusal}, luaL_Reg{"line", terminal_line},
                                   luaL_Reg{"write", terminal_write}, luaL_Reg{"close", terminal_close}}) {
    lua_pushlightuserdata(L_, this);
    lua_pushcclosure(L_, function.func, 1);
    lua_setfield(L_, -2, function.name);
  }
  lua_pushnumber(L_, std::chrono::duration<double>(kTimeAtPrompt).count());
  lua_setfield(L_, -2, "limit_s");
}

/// refusal() -> why no prompt can be opened | nil
int LuaCallbacks::terminal_refusal(lua_State* L) {
  return protect(L, [&] {
    const auto& self = *static_cast<LuaCallbacks*>(lua_touserdata(L, lua_upvalueindex(1)));
    const std::string why = self.terminal_ == nullptr ? "there is no terminal" : self.terminal_->refusal();
    if (why.empty()) return 0;
    push_text(L, why);
    return 1;
  });
}

/// line(prompt, limit_s) -> text, seconds that it took | nil
int LuaCallbacks::terminal_line(lua_State* L) {
  return protect(L, [&] {
    auto& self = *static_cast<LuaCallbacks*>(lua_touserdata(L, lua_upvalueindex(1)));
    CallbackPort* const port = self.context_->port;
    std::optional<InPhase> phase;
    if (port != nullptr && port->progress != nullptr) phase.emplace(kAtPrompt, *port->progress);
    const LuaWatch::Pause pause;
    const auto start = std::chrono::steady_clock::now();
    const std::optional<std::string> line =
        self.terminal_->read_line(string_argument(L, 1), luaL_checknumber(L, 2));
    const double waited_s = seconds_since(start);
    if (port != nullptr) port->waited_s += waited_s;
    if (!line) return 0;
    push_text(L, *line);
    lua_pushnumber(L, waited_s);
    return 2;
  });
}

/// write(text), to the terminal, or to standard error where there is none
int LuaCallbacks::terminal_write(lua_State* L) {
  return protect(L, [&] {
    const auto& self = *static_cast<LuaCallbacks*>(lua_touserdata(L, lua_upvalueindex(1)));
    const std::string text = without_secrets(string_argument(L, 1));
    if (self.terminal_ == nullptr)
      fmt::print(stderr, "{}", text);
    else
      self.terminal_->write(text);
    return 0;
  });
}

/// close()
int LuaCallbacks::terminal_close(lua_State* L) {
  return protect(L, [&] {
    static_cast<LuaCallbacks*>(lua_touserdata(L, lua_upvalueindex(1)))->terminal_->close();
    return 0;
  });
}

void LuaCallbacks::push_function(const char* name) {
  const auto known = functions_.find(std::string_view(name));
  if (known != functions_.end()) return lua_rawgeti(L_, LUA_REGISTRYINDEX, known->second);
  lua_getglobal(L_, "require");
  lua_pushstring(L_, "tycho.running");
  call_lua(L_, 1, 1);
  lua_getfield(L_, -1, name);
  lua_remove(L_, -2);
  lua_pushvalue(L_, -1);
  functions_[name] = luaL_ref(L_, LUA_REGISTRYINDEX);
}

void LuaCallbacks::call(const char* name, int num_args, int num_results, double limit_s, const char* what) {
  push_function(name);
  lua_insert(L_, -num_args - 1);
  const LuaWatch watch(L_, {.max_instructions = std::numeric_limits<int64_t>::max(),
                            .max_seconds = limit_s,
                            .max_is_wall_clock = true,
                            .max_bytes = recipe_.config.lua_memory.value,
                            .grace_s = kGrace_s,
                            .warn_s = named_.contains(what) ? kNever_s : kWarn_s,
                            .what = what,
                            .bytes_hint = ", the limit of lua_memory",
                            .warn = &warn_});
  try {
    call_lua(L_, num_args, num_results);
  } catch (...) {
    if (watch.was_named()) named_.insert(what);
    if (scope_) scope_->close();
    throw;
  }
  if (watch.was_named()) named_.insert(what);
  if (scope_) scope_->close();
  objects_->drain();
}

void LuaCallbacks::push_context(std::string scope, CallbackKind kind, const EventInfo& info,
                                CallbackPort& port) {
  scope_ = std::make_shared<Scope>(std::move(scope), /*may_act=*/false);
  session_->scope = scope_;
  session_->writes_files = session_->session->facts().rank == 0;
  session_->keeps_record = kind != CallbackKind::kEverywhere || session_->session->facts().rank == 0;
  context_->info = &info;
  context_->port = &port;
  objects_->push(L_, ctx_class(kind), context_, scope_);
}

std::string LuaCallbacks::evaluate(const std::string& code, bool may_command, const EventInfo& info,
                                   CallbackPort& port) {
  if (!visitor_) {
    auto visitor = std::make_unique<LuaCallbacks>(in_own_state(recipe_));
    visitor->callbacks();
    visitor->set_session(session_->session);
    visitor_ = std::move(visitor);
  }
  try {
    std::string text = visitor_->evaluate_here(code, may_command, info, port);
    visitor_->is_full_after_collection();
    return text;
  } catch (const Error& error) {
    if (!visitor_->is_full_after_collection()) throw;
    visitor_.reset();
    throw Error(fmt::format("{}; the names that entries had set are gone", error.what()), error.code());
  }
}

bool LuaCallbacks::is_full_after_collection() {
  if (lua_gc(L_, LUA_GCCOUNT, 0) <= kKeptEntryKiB) return false;
  lua_gc(L_, LUA_GCCOLLECT, 0);
  return int64_t{lua_gc(L_, LUA_GCCOUNT, 0)} * 1024 > recipe_.config.lua_memory.value / 2;
}

std::string LuaCallbacks::evaluate_here(const std::string& code, bool may_command, const EventInfo& info,
                                        CallbackPort& port) {
  push_text(L_, code);
  push_context("the line that was typed", may_command ? CallbackKind::kControl : CallbackKind::kObserve, info,
               port);
  call("evaluate", 2, 1, kEntryLimit_s, "an entry of tycho attach");
  std::string text = lua_tostring(L_, -1);
  lua_pop(L_, 1);
  return without_secrets(std::move(text));
}

}  // namespace tycho
