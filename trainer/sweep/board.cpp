// Reads the ledger's facts one by one; each changes the state of one trial.
#include "trainer/sweep/board.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr std::array<const char*, 10> kStateNames = {"planned", "claimed", "running",  "rung_done",
                                                     "paused",  "lost",    "finished", "failed",
                                                     "stopped", "dropped"};

TrialState state_of(const std::string& name) {
  for (size_t i = 0; i < kStateNames.size(); ++i)
    if (name == kStateNames[i]) return static_cast<TrialState>(i);
  fail(ExitCode::kUnusable, "[sweep] the ledger has a state that this version does not know: {}", name);
}

int64_t count_of(const Json& fact, const char* key) {
  const auto found = fact.find(key);
  return found != fact.end() && found->is_number() ? found->get<int64_t>() : 0;
}

std::string text_of(const Json& fact, const char* key) {
  const auto found = fact.find(key);
  return found != fact.end() && found->is_string() ? found->get<std::string>() : "";
}

RungResult result_of(const Json& fact) {
  RungResult result{
      .step = count_of(fact, "step"), .tokens = count_of(fact, "tokens"), .value = {}, .evals = {}};
  const auto value = fact.find("value");
  if (value != fact.end() && value->is_number()) result.value = value->get<double>();
  if (const auto evals = fact.find("evals"); evals != fact.end() && evals->is_object())
    for (const auto& [metric, loss] : evals->items())
      if (loss.is_number()) result.evals[metric] = loss.get<double>();
  return result;
}

Json result_json(const RungResult& result) {
  Json json = {{"step", result.step}, {"tokens", result.tokens}};
  if (result.value && std::isfinite(*result.value)) json["value"] = *result.value;
  for (const auto& [metric, loss] : result.evals)
    if (std::isfinite(loss)) json["evals"][metric] = loss;
  return json;
}

Json state_fact(const Trial& trial) {
  TrialEnd end{.state = trial.state,
               .result = trial.last,
               .wall_s = trial.wall_s,
               .exit_code = trial.exit_code,
               .note = trial.note,
               .retries = trial.retries,
               .losses = trial.losses,
               .micro_batch = trial.halved ? trial.micro_batch : 0};
  Json fact = end_fact(trial, trial.claim, trial.rung, end);
  fact["total_wall_s"] = trial.wall_s;
  fact["host"] = trial.host;
  for (const auto& [rung, result] : trial.rungs) {
    Json one = result_json(result);
    one["rung"] = rung;
    fact["rungs"].push_back(std::move(one));
  }
  return fact;
}

}  // namespace

const char* state_name(TrialState state) { return kStateNames[static_cast<size_t>(state)]; }

bool Trial::is_open() const {
  return in_plan &&
         (state <= TrialState::kRunning || state == TrialState::kPaused || state == TrialState::kLost);
}

Trial& Board::trial_of(const std::string& id) {
  const auto [found, is_new] = index_.try_emplace(id, trials_.size());
  if (is_new) {
    trials_.emplace_back();
    trials_.back().plan.id = id;
    trials_.back().number = static_cast<int64_t>(trials_.size());
  }
  return trials_[found->second];
}

const Trial* Board::find(const std::string& id_or_number) const {
  if (const auto found = index_.find(id_or_number); found != index_.end()) return &trials_[found->second];
  for (const Trial& trial : trials_)
    if (std::to_string(trial.number) == id_or_number) return &trial;
  return nullptr;
}

std::string Board::run_dir(const std::string& sweep_dir, const Trial& trial) {
  return fmt::format("{}/trials/{:04}-{}", sweep_dir, trial.number, trial.plan.id);
}

void Board::apply(const Json& fact, const std::string& sweep_dir) {
  const std::string type = fact.at("type");
  if (type == "plan") return apply_definition(text_of(fact, "definition"), sweep_dir);
  if (type == "pause") paused_ = true;
  if (type == "go") paused_ = false;
  if (type == "submit") job_ = text_of(fact, "job");
  const std::string id = text_of(fact, "trial");
  if (id.empty()) return;
  if (type == "trial") return apply_trial(fact);
  if (!index_.contains(id)) return;  // of a definition that this board was not told of
  Trial& trial = trial_of(id);
  const int64_t claim = count_of(fact, "claim");
  if (type == "claim") apply_claim(trial, fact);
  if (type == "running" && claim == trial.claim && trial.state == TrialState::kClaimed)
    trial.state = TrialState::kRunning;
  if (type == "end" && claim == trial.claim) apply_end(trial, fact);
  if (type == "drop" && !trial.is_working()) trial.state = TrialState::kDropped;
  if (type == "retry" && !trial.is_working()) {
    trial.state = TrialState::kPaused;
    trial.retries = trial.losses = 0;
    trial.note = "to be retried";
  }
}

void Board::apply_definition(const std::string& hash, const std::string& sweep_dir) {
  if (hash == definition_hash_) return;
  definition_ = read_definition(sweep_dir, hash);
  definition_hash_ = hash;
  definitions_.push_back(hash);
  for (Trial& trial : trials_) trial.in_plan = !trial.finalist.empty();
  for (const TrialPlan& plan : definition_.trials) {
    Trial& trial = trial_of(plan.id);
    trial.plan = plan;
    trial.in_plan = true;
  }
}

void Board::apply_trial(const Json& fact) {
  Trial& trial = trial_of(text_of(fact, "trial"));
  if (!trial.plan.pins.empty()) return;
  trial.plan.pins = fact.at("pins").get<std::vector<std::string>>();
  trial.plan.values = fact.at("values").get<std::map<std::string, std::string>>();
  trial.finalist = text_of(fact, "finalist");
  if (index_.contains(trial.finalist)) trials_[index_[trial.finalist]].is_repeated = true;
}

void Board::apply_claim(Trial& trial, const Json& fact) {
  const int64_t claim = count_of(fact, "claim");
  if (claim <= trial.claim) return;
  trial.claim = claim;
  trial.state = TrialState::kClaimed;
  trial.rung = count_of(fact, "rung");
  trial.host = text_of(fact, "host");
}

void Board::apply_end(Trial& trial, const Json& fact) {
  const TrialState state = state_of(text_of(fact, "state"));
  if (fact.contains("total_wall_s")) {  // after a compaction
    trial.wall_s = fact["total_wall_s"].get<double>();
    trial.host = text_of(fact, "host");
  } else if (trial.is_working() && fact.contains("wall_s")) {
    trial.wall_s += fact["wall_s"].get<double>();
  }
  trial.state = state;
  trial.rung = count_of(fact, "rung");
  const RungResult result = result_of(fact);
  if (state != TrialState::kLost) trial.last = result;
  if (state == TrialState::kRungDone || state == TrialState::kFinished) trial.rungs[trial.rung] = result;
  if (fact.contains("rungs"))
    for (const Json& one : fact["rungs"]) trial.rungs[count_of(one, "rung")] = result_of(one);
  trial.note = text_of(fact, "note");
  trial.exit_code = count_of(fact, "code");
  trial.retries = count_of(fact, "retries");
  trial.losses = count_of(fact, "losses");
  trial.micro_batch = count_of(fact, "micro_batch");
  trial.halved = trial.micro_batch > 0;
}

std::vector<Json> Board::facts() const {
  std::vector<Json> facts;
  for (const std::string& hash : definitions_) facts.push_back({{"type", "plan"}, {"definition", hash}});
  for (const Trial& trial : trials_) {
    if (!trial.finalist.empty()) facts.push_back(trial_fact(trial.plan, trial.finalist));
    if (trial.claim == 0 && trial.state == TrialState::kPlanned) continue;
    if (trial.claim > 0) facts.push_back(claim_fact(trial, trial.claim, trial.rung, trial.host, 0));
    if (trial.state == TrialState::kDropped) {
      facts.push_back({{"type", "drop"}, {"trial", trial.plan.id}});
    } else if (trial.state == TrialState::kRunning) {
      facts.push_back(running_fact(trial, trial.claim));
    } else if (trial.state != TrialState::kClaimed) {
      facts.push_back(state_fact(trial));
    }
  }
  if (!job_.empty()) facts.push_back({{"type", "submit"}, {"job", job_}});
  if (paused_) facts.push_back({{"type", "pause"}});
  return facts;
}

Json claim_fact(const Trial& trial, int64_t claim, int64_t rung, const std::string& host, int64_t pid) {
  return {{"type", "claim"}, {"trial", trial.plan.id}, {"claim", claim},
          {"rung", rung},    {"host", host},           {"pid", pid}};
}

Json running_fact(const Trial& trial, int64_t claim) {
  return {{"type", "running"}, {"trial", trial.plan.id}, {"claim", claim}};
}

Json end_fact(const Trial& trial, int64_t claim, int64_t rung, const TrialEnd& end) {
  Json fact = {{"type", "end"},        {"trial", trial.plan.id},         {"claim", claim},
               {"rung", rung},         {"state", state_name(end.state)}, {"wall_s", end.wall_s},
               {"code", end.exit_code}};
  fact.update(result_json(end.result));
  if (!end.note.empty()) fact["note"] = end.note;
  if (end.retries > 0) fact["retries"] = end.retries;
  if (end.losses > 0) fact["losses"] = end.losses;
  if (end.micro_batch > 0) fact["micro_batch"] = end.micro_batch;
  return fact;
}

Json trial_fact(const TrialPlan& plan, const std::string& finalist) {
  return {{"type", "trial"},
          {"trial", plan.id},
          {"pins", plan.pins},
          {"values", plan.values},
          {"finalist", finalist}};
}

}  // namespace tycho
