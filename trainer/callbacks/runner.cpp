// Calls due callbacks and agrees with the other ranks on what failed.
#include "trainer/callbacks/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/nearest.h"
#include "trainer/base/seconds_since.h"
#include "trainer/base/text/json_number.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

constexpr double kSoftLimit_s = 0.05;
constexpr int64_t kStepsThatStop = 100;

/// Returns "0.042 %", "100 %": two digits, without an exponent.
std::string percent_text(double percent) {
  return percent < 10 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

bool runs_here(const Callback& callback, const RunnerContext& context) {
  if (context.rank == 0 || callback.kind == CallbackKind::kEverywhere) return true;
  return callback.kind == CallbackKind::kObserve && callback.ranks == ObserveRanks::kLocalZero &&
         context.local_rank == 0;
}

/// Reports a record of another rank's callback.
void report(const Json& record, size_t rank, Reporter& reporter) {
  if (record.contains("metric"))
    return reporter.metric(record.at("step"),
                           fmt::format("{}.rank_{}", record.at("metric").get<std::string>(), rank),
                           number_in(record, "value").value());
  Json facts = record.at("facts");
  if (facts.is_object()) facts["rank"] = rank;
  reporter.event(record.at("kind"), fmt::format("rank {}: {}", rank, record.at("text").get<std::string>()),
                 facts);
}

/// Returns the failures without those that only repeat the failure of another rank, when that rank gives the
/// cause.
std::vector<Json> causes(const std::vector<Json>& failures) {
  std::vector<Json> kept;
  for (const Json& one : failures) {
    const bool is_explained =
        one.value("echo", false) && std::any_of(failures.begin(), failures.end(), [&](const Json& other) {
          return other.at("callback") == one.at("callback") && !other.value("echo", false);
        });
    if (!is_explained) kept.push_back(one);
  }
  return kept;
}

}  // namespace

CallbackRunner::CallbackRunner(std::vector<Callback> callbacks, RunnerContext context)
    : context_(std::move(context)) {
  for (Callback& callback : callbacks) {
    known_[callback.name] = callback.options.on_error.value_or(OnError::kDisable);
    explicit_policy_[callback.name] = callback.options.on_error.has_value();
    if (!runs_here(callback, context_)) continue;
    callbacks_.emplace_back().callback = std::move(callback);
  }
  follow_clock();
  std::sort(callbacks_.begin(), callbacks_.end(), [](const Slot& a, const Slot& b) {
    return std::pair(a.callback.options.order, a.callback.name) <
           std::pair(b.callback.options.order, b.callback.name);
  });
}

void CallbackRunner::follow_clock() {
  const auto lead = [&](const Duration& length) { return context_.lead ? context_.lead(length.unit) : 0.0; };
  const auto step_at = [&](const Duration& moment) { return context_.in_steps(moment) - lead(moment); };
  for (Slot& slot : callbacks_) {
    const CallbackOptions& options = slot.callback.options;
    const bool moments_only = !options.every && !options.at.empty();
    slot.every = options.every ? std::max(1.0, context_.in_steps(*options.every)) : moments_only ? 0.0 : 1.0;
    slot.lead = options.every ? lead(*options.every) : 0;
    slot.from = options.from ? step_at(*options.from) : 0;
    slot.until = options.until_ ? step_at(*options.until_) : std::numeric_limits<double>::infinity();
    slot.at.clear();
    for (const Duration& moment : options.at) slot.at.push_back(std::ceil(step_at(moment)));
  }
}

bool CallbackRunner::due(const Slot& slot, Event event, int64_t step) const {
  const auto found = enabled_.find(slot.callback.name);
  if (found != enabled_.end() && !found->second) return false;
  const auto now = static_cast<double>(step);
  if (now < slot.from || now > slot.until) return false;
  if (!entry_of(event).of_step) return true;
  const double clock = now + slot.lead;
  if (slot.every > 0 && std::floor(clock / slot.every) > std::floor((clock - 1) / slot.every)) return true;
  return std::find(slot.at.begin(), slot.at.end(), now) != slot.at.end();
}

bool CallbackRunner::wants(Event event, int64_t step) const {
  return std::any_of(callbacks_.begin(), callbacks_.end(), [&](const Slot& slot) {
    return slot.callback.code->handles(event) && due(slot, event, step);
  });
}

void CallbackRunner::announce(const EventInfo& info) {
  // Steps count from 1 while they run, as they will when they are done.
  const int64_t step = info.metrics.step + (entry_of(info.event).in_step ? 1 : 0);
  for (Slot& slot : callbacks_)
    if (slot.callback.code->handles(info.event) && due(slot, info.event, step)) call(slot, info);
}

void CallbackRunner::call(Slot& slot, const EventInfo& info) {
  using Clock = std::chrono::steady_clock;
  std::vector<Command> commands;
  CallbackPort port{commands, slot.callback.kind == CallbackKind::kEverywhere ? context_.dist : nullptr,
                    &process_progress()};
  const InPhase phase("in callback " + slot.callback.name);
  const auto start = Clock::now();
  bool failed = true;
  if (port.dist != nullptr) port.dist->enter();
  running_ = slot.callback.kind;
  try {
    slot.callback.code->run(info, port);
    failed = false;
    for (Command& command : commands) {
      command.by = slot.callback.name;
      commands_.push_back(std::move(command));
    }
  } catch (const Error& error) {
    if (error.code() == ExitCode::kInterrupted) {
      context_.reporter.event("warning", fmt::format("callback \"{}\": {}", slot.callback.name, error.what()),
                              {{"callback", slot.callback.name}});
    } else {
      failures_.push_back({{"callback", slot.callback.name},
                           {"event", enum_name(info.event)},
                           {"message", error.what()},
                           {"echo", port.dist != nullptr && port.dist->told_of_failure()}});
    }
  }
  running_.reset();
  if (port.dist != nullptr) port.dist->leave(failed);
  account(slot, info, seconds_since(start) - port.waited_s);
}

void CallbackRunner::account(Slot& slot, const EventInfo& info, double seconds) {
  ++slot.calls;
  slot.total_s += seconds;
  slot.longest_s = std::max(slot.longest_s, seconds);
  if (seconds < kSoftLimit_s || slot.warned || info.metrics.step == 0) return;
  slot.warned = true;
  const double share = info.metrics.step_s > 0 ? 100 * seconds / info.metrics.step_s : 0;
  context_.reporter.event(
      "warning",
      fmt::format("callback \"{}\" took {:.0f} ms in {}, {:.0f} % of a step; training waits for it",
                  slot.callback.name, 1e3 * seconds, enum_name(info.event), share),
      {{"callback", slot.callback.name}, {"event", enum_name(info.event)}, {"seconds", seconds}});
}

Agreement CallbackRunner::boundary(int64_t step, std::vector<Command> operators, int signal) {
  std::string mine;
  if (!failures_.empty() || !records_.empty() || !commands_.empty() || !operators.empty() || signal != 0) {
    Json commands = Json::array();
    for (const Command& command : commands_) commands.push_back(command_json(command));
    for (const Command& command : operators) commands.push_back(command_json(command));
    mine = Json{{"failures", std::move(failures_)},
                {"commands", std::move(commands)},
                {"records", std::move(records_)},
                {"signal", signal}}
               .dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  commands_.clear();
  failures_ = Json::array();
  records_ = Json::array();
  Agreement agreed;
  std::vector<Json> failures;
  const std::vector<std::string> texts = context_.gather(mine);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    const Json said = parse_json(texts[rank], "boundary");
    if (rank == 0)
      for (const Json& command : said.at("commands")) agreed.commands.push_back(command_from_json(command));
    for (const Json& record : said.at("records")) report(record, rank, context_.reporter);
    for (Json failed : said.at("failures")) {
      failed["rank"] = rank;
      failures.push_back(std::move(failed));
    }
    if (agreed.signal == 0) agreed.signal = said.at("signal");
  }
  for (const Json& failed : causes(failures)) {
    const std::string stop = handle(failed, step);
    if (agreed.failure.empty()) agreed.failure = stop;
  }
  return agreed;
}

std::string CallbackRunner::handle(const Json& failure, int64_t step) {
  const std::string name = failure.at("callback");
  const std::string text =
      fmt::format("rank {}, {} of \"{}\": {}", failure.at("rank").get<int64_t>(),
                  failure.at("event").get<std::string>(), name, failure.at("message").get<std::string>());
  OnError policy = known_.at(name);
  if (!explicit_policy_.at(name) && step <= kStepsThatStop) policy = OnError::kStop;
  if (policy == OnError::kStop) return text;
  if (policy == OnError::kDisable) enabled_[name] = false;
  context_.reporter.event("warning", text + (policy == OnError::kDisable ? "; it is disabled" : ""),
                          {{"callback", name}, {"step", step}, {"on_error", enum_name(policy)}});
  return "";
}

void CallbackRunner::record_metric(int64_t step, const std::string& name, double value) {
  Json record = {{"step", step}, {"metric", name}};
  set_number(record, "value", value);
  records_.push_back(std::move(record));
}

void CallbackRunner::record_event(const std::string& kind, const std::string& text, const Json& facts) {
  records_.push_back({{"kind", kind}, {"text", text}, {"facts", facts}});
}

void CallbackRunner::enable(const std::string& name, bool on) {
  if (!known_.contains(name)) {
    std::vector<std::string> names;
    for (const auto& [known, policy] : known_) names.push_back(known);
    fail(ExitCode::kRecipe, "[cmd] no callback \"{}\"{}", name, did_you_mean(name, names));
  }
  enabled_[name] = on;
}

Json CallbackRunner::state() const {
  Json states = Json::object();
  for (const Slot& slot : callbacks_) {
    Json state = slot.callback.code->state();
    if (!state.is_null()) states[slot.callback.name] = std::move(state);
  }
  return states;
}

void CallbackRunner::set_state(const Json& states, const std::map<std::string, bool>& enabled) {
  enabled_ = enabled;
  std::erase_if(enabled_, [&](const auto& one) { return !known_.contains(one.first); });
  for (Slot& slot : callbacks_)
    if (states.contains(slot.callback.name)) slot.callback.code->set_state(states.at(slot.callback.name));
}

void CallbackRunner::report_costs(double run_s) const {
  Json costs = Json::object();
  double total = 0;
  for (const Slot& slot : callbacks_) {
    if (slot.calls == 0) continue;
    total += slot.total_s;
    costs[slot.callback.name] = {
        {"calls", slot.calls}, {"seconds", slot.total_s}, {"longest_s", slot.longest_s}};
  }
  if (costs.empty()) return;
  context_.reporter.event(
      "callbacks",
      fmt::format("{} callback{} took {:.3g} s, {} of the run", costs.size(), costs.size() == 1 ? "" : "s",
                  total, percent_text(run_s > 0 ? 100 * total / run_s : 0.0)),
      costs);
}

}  // namespace tycho
