// TrainState as JSON, and back with every value checked.
#include "trainer/state/train_state.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/text/json_number.h"

namespace tycho {
namespace {

/// Removes `key` from an object and returns its value, so that the keys left at the end are unknown ones.
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
    fail(ExitCode::kUnusable, "[train state] expected a whole number >= 0 for {}, got {}", key, value.dump());
  }
  return value.get<int64_t>();
}

void check_empty(const Json& object) {
  if (object.empty()) return;
  // Dropping it would silently change the numbers.
  fail(ExitCode::kUnusable,
       "[train state] \"{}\" is unknown: a newer Tycho wrote this checkpoint; use that version to resume",
       object.begin().key());
}

Json score_json(const EvalScore& score) {
  Json json = Json::object();
  set_number(json, "loss", score.loss);
  if (score.bits_per_byte) set_number(json, "bits_per_byte", *score.bits_per_byte);
  json["tokens"] = score.tokens;
  json["step"] = score.step;
  return json;
}

EvalScore take_score(Json& object, const std::string& key) {
  Json score = take(object, key);
  const std::optional<double> number = number_in(score, "loss");
  if (score.is_object()) score.erase(kNotFinite);
  const Json given = take(score, "loss");
  if (!number && !given.is_null())
    fail(ExitCode::kUnusable, "[train state] expected a number for loss, got {}", given.dump());
  const double loss = number.value_or(NAN);
  std::optional<double> bits;
  if (score.is_object() && score.contains("bits_per_byte")) {
    const Json text = take(score, "bits_per_byte");
    bits = text.is_number() ? text.get<double>() : NAN;
  }
  const int64_t tokens = take_count(score, "tokens"), step = take_count(score, "step");
  check_empty(score);
  return {loss, std::exp(loss), tokens, step, bits};
}

Json record_json(const EvalRecord& record) {
  return {{"last", score_json(record.last)}, {"best", score_json(record.best)}};
}

EvalRecord read_record(Json json) {
  EvalRecord record;
  record.last = take_score(json, "last");
  record.best = take_score(json, "best");
  check_empty(json);
  return record;
}

Json records_json(const EvalRecords& records) {
  Json json = Json::object(), sets = Json::object();
  if (records.total) json["total"] = record_json(*records.total);
  for (const auto& [name, record] : records.sets) sets[name] = record_json(record);
  json["sets"] = std::move(sets);
  return json;
}

EvalRecords read_records(Json json) {
  EvalRecords records;
  if (json.contains("total")) records.total = read_record(take(json, "total"));
  const Json sets = take(json, "sets");
  if (!sets.is_object())
    fail(ExitCode::kUnusable, "[train state] expected the sets of eval, got {}", sets.dump());
  for (const auto& [name, record] : sets.items()) records.sets[name] = read_record(record);
  check_empty(json);
  return records;
}

OrderMarks read_marks(const Json& json) {
  const auto is_words = [](const Json& words) {
    return words.is_array() &&
           std::all_of(words.begin(), words.end(), [](const Json& one) { return one.is_number_unsigned(); });
  };
  if (!json.is_object() || !std::all_of(json.begin(), json.end(), is_words))
    fail(ExitCode::kUnusable,
         "[train state] expected lists of whole numbers >= 0 for order_marks: the checkpoint is damaged");
  return json.get<OrderMarks>();
}

}  // namespace

Json TrainState::to_json() const {
  Json json = {{"step", step},
               {"samples", samples},
               {"tokens", tokens},
               {"data", {{"epoch", data.epoch}, {"sample", data.sample}}}};
  if (clock != RunClock())
    json["clock"] = {{"step", clock.step}, {"samples", clock.samples}, {"tokens", clock.tokens}};
  if (stage > 0) json["data"]["stage"] = stage;
  if (!order_marks.empty()) json["data"]["order_marks"] = order_marks;
  if (skipped > 0) json["skipped"] = {{"total", skipped}, {"in_a_row", skipped_in_a_row}};
  if (const Json changed = controls.to_json(); !changed.is_null()) json["controls"] = changed;
  if (!callbacks.empty()) json["callbacks"] = callbacks;
  if (!schedule.is_null()) json["schedule"] = schedule;
  if (eval_open) json["eval_open"] = true;
  if (icl_open) json["icl_open"] = true;
  if (!eval.sets.empty()) json["eval"] = records_json(eval);
  return json;
}

TrainState TrainState::from_json(const Json& json) {
  Json rest = json;
  TrainState state;
  state.step = take_count(rest, "step");
  state.samples = take_count(rest, "samples");
  state.tokens = take_count(rest, "tokens");
  if (rest.contains("clock")) {
    Json clock = take(rest, "clock");
    state.clock = {take_count(clock, "step"), take_count(clock, "samples"), take_count(clock, "tokens")};
    check_empty(clock);
  }
  Json cursor = take(rest, "data");
  state.data.epoch = take_count(cursor, "epoch");
  state.data.sample = take_count(cursor, "sample");
  if (cursor.contains("stage")) state.stage = take_count(cursor, "stage");
  if (cursor.contains("order_marks")) state.order_marks = read_marks(take(cursor, "order_marks"));
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
  if (rest.contains("icl_open")) state.icl_open = take(rest, "icl_open");
  if (rest.contains("eval")) state.eval = read_records(take(rest, "eval"));
  check_empty(rest);
  return state;
}

}  // namespace tycho
