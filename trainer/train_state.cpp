// TrainState as JSON, and back with every value checked.
#include "trainer/train_state.h"

#include <string>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Takes `key` out of an object, so that what is left at the end is unknown.
Json take(Json& object, const std::string& key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) {
    fail(ExitCode::kUnusable, "[train state] {} is missing: the checkpoint is damaged or of another version",
         key);
  }
  Json value = *found;
  object.erase(found);
  return value;
}

int64_t take_count(Json& object, const std::string& key) {
  const Json value = take(object, key);
  if (!value.is_number_integer() || value.get<int64_t>() < 0) {
    fail(ExitCode::kUnusable, "[train state] wanted a whole number >= 0 for {}, given {}", key, value.dump());
  }
  return value.get<int64_t>();
}

void check_empty(const Json& object) {
  if (object.empty()) return;
  // Dropping it would change the numbers without a word.
  fail(ExitCode::kUnusable,
       "[train state] \"{}\" is unknown: a newer Tycho wrote this checkpoint; resume it with that one",
       object.begin().key());
}

Json score_json(const EvalScore& score) {
  return {
      {"loss", score.loss}, {"perplexity", score.perplexity}, {"tokens", score.tokens}, {"step", score.step}};
}

std::optional<EvalScore> take_score(Json& object, const std::string& key) {
  if (!object.contains(key)) return std::nullopt;
  Json score = take(object, key);
  const double loss = take(score, "loss"), perplexity = take(score, "perplexity");
  return EvalScore{loss, perplexity, take_count(score, "tokens"), take_count(score, "step")};
}

}  // namespace

Json TrainState::to_json() const {
  Json json = {{"step", step},
               {"samples", samples},
               {"tokens", tokens},
               {"data", {{"epoch", data.epoch}, {"sample", data.sample}}}};
  if (skipped > 0) json["skipped"] = {{"total", skipped}, {"in_a_row", skipped_in_a_row}};
  if (const Json changed = controls.to_json(); !changed.is_null()) json["controls"] = changed;
  if (!callbacks.empty()) json["callbacks"] = callbacks;
  if (!schedule.is_null()) json["schedule"] = schedule;
  if (eval_open) json["eval_open"] = true;
  if (last_eval) json["last_eval"] = score_json(*last_eval);
  if (best_eval) json["best_eval"] = score_json(*best_eval);
  return json;
}

TrainState TrainState::from_json(const Json& json) {
  Json rest = json;
  TrainState state;
  state.step = take_count(rest, "step");
  state.samples = take_count(rest, "samples");
  state.tokens = take_count(rest, "tokens");
  Json cursor = take(rest, "data");
  state.data.epoch = take_count(cursor, "epoch");
  state.data.sample = take_count(cursor, "sample");
  check_empty(cursor);
  if (rest.contains("skipped")) {
    Json skips = take(rest, "skipped");
    state.skipped = take_count(skips, "total");
    state.skipped_in_a_row = take_count(skips, "in_a_row");
    check_empty(skips);
  }
  if (rest.contains("controls")) state.controls = Controls::from_json(take(rest, "controls"));
  if (rest.contains("callbacks")) state.callbacks = take(rest, "callbacks");
  if (rest.contains("schedule")) state.schedule = take(rest, "schedule");
  if (rest.contains("eval_open")) state.eval_open = take(rest, "eval_open");
  state.last_eval = take_score(rest, "last_eval");
  state.best_eval = take_score(rest, "best_eval");
  check_empty(rest);
  return state;
}

}  // namespace tycho
