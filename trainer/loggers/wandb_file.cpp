// Composes the file of an offline run.
#include "trainer/loggers/wandb_file.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/base/hmac.h"
#include "trainer/loggers/wire_message.h"

namespace tycho {
namespace {

/// Returns a number in the form of Python's json, where NaN and Infinity are words.
std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return Json(value).dump();
}

WireMessage item(std::string_view name, const std::string& json) {
  return WireMessage().text(2, name).text(16, json);
}

/// Returns the items of a history or summary, and those that wandb adds to every row.
WireMessage items(const WandbRow& row, double runtime_s) {
  WireMessage all;
  for (const auto& [name, value] : row.numbers.numbers) all.message(1, item(name, json_number(value)));
  for (const auto& [name, json] : row.others) all.message(1, item(name, json));
  all.message(1, item("_timestamp", json_number(row.numbers.time_s)));
  all.message(1, item("_runtime", json_number(runtime_s)));
  all.message(1, item("_step", fmt::format("{}", row.numbers.step)));
  return all;
}

}  // namespace

NamedText wandb_histogram(const NamedHistogram& histogram) {
  Json bins = Json::array();
  const auto num_bins = static_cast<double>(histogram.counts.size());
  for (size_t i = 0; i <= histogram.counts.size(); ++i)
    bins.push_back(histogram.low + (histogram.high - histogram.low) * static_cast<double>(i) / num_bins);
  const Json json = {{"_type", "histogram"}, {"values", histogram.counts}, {"bins", std::move(bins)}};
  return {histogram.name, json.dump()};
}

std::string wandb_header_message(int64_t number) {
  const WireMessage version = WireMessage().text(1, "tycho").text(2, "0.70.0");
  return WireMessage().integer(1, number).message(21, WireMessage().message(1, version)).bytes();
}

std::string wandb_run_message(int64_t number, const WandbRun& run) {
  WireMessage config, message;
  for (const auto& [key, value] : run.config.items())
    config.message(
        1, WireMessage().text(1, key).text(16, value.dump(-1, ' ', false, Json::error_handler_t::replace)));
  // wandb fills this in, and W&B takes a run without it for one that never began: a later attempt would
  // replace what an earlier one has sent.
  config.message(1, WireMessage().text(1, "_wandb").text(16, "{}"));
  message.text(1, run.id);
  if (!run.entity.empty()) message.text(2, run.entity);
  message.text(3, run.project).message(4, config);
  if (!run.group.empty()) message.text(6, run.group);
  message.text(8, run.name);
  for (const std::string& tag : run.tags) message.text(10, tag);
  message.text(13, run.host);
  const double whole_s = std::floor(run.start_s);
  message.message(17, WireMessage()
                          .integer(1, static_cast<int64_t>(whole_s))
                          .integer(2, static_cast<int64_t>((run.start_s - whole_s) * 1e9)));
  if (run.resumes) message.integer(24, 1);
  return WireMessage().integer(1, number).message(17, message).bytes();
}

std::string wandb_history_message(int64_t number, const WandbRow& row, double runtime_s) {
  WireMessage history = items(row, runtime_s);
  history.message(2, WireMessage().integer(1, row.numbers.step));
  return WireMessage().integer(1, number).message(2, history).bytes();
}

std::string wandb_summary_message(int64_t number, const WandbRow& row, double runtime_s) {
  return WireMessage().integer(1, number).message(3, items(row, runtime_s)).bytes();
}

std::string wandb_file_message(int64_t number, const std::string& path) {
  const WireMessage file = WireMessage().text(1, path);
  return WireMessage().integer(1, number).message(6, WireMessage().message(1, file)).bytes();
}

std::string wandb_machine_message(int64_t number, double time_s, const std::vector<NamedText>& items) {
  const double whole_s = std::floor(time_s);
  WireMessage stats;
  stats.message(2, WireMessage()
                       .integer(1, static_cast<int64_t>(whole_s))
                       .integer(2, static_cast<int64_t>((time_s - whole_s) * 1e9)));
  for (const auto& [name, json] : items) stats.message(3, WireMessage().text(1, name).text(16, json));
  return WireMessage().integer(1, number).message(7, stats).bytes();
}

std::string wandb_alert_message(int64_t number, const NamedText& alert) {
  const WireMessage message = WireMessage().text(1, alert.name).text(2, alert.text).text(3, "WARN");
  return WireMessage().integer(1, number).message(10, message).bytes();
}

std::string wandb_artifact_message(int64_t number, const WandbRun& run, const WandbArtifact& artifact) {
  WireMessage message, manifest;
  message.text(1, run.id).text(2, run.project).text(3, run.entity).text(4, artifact.type);
  message.text(5, artifact.name).text(6, artifact.digest).text(8, artifact.metadata.dump());
  message.integer(9, 1);
  for (const std::string& alias : artifact.aliases) message.text(11, alias);
  manifest.integer(1, 1).text(2, "wandb-storage-policy-v1");
  manifest.message(3, WireMessage().text(1, "storageLayout").text(2, R"("V2")"));
  manifest.message(
      4, WireMessage().text(1, artifact.entry).text(2, artifact.reference).text(3, artifact.reference));
  message.message(12, manifest).integer(14, 1);
  message.text(15, wandb_client_id(run.id + artifact.name + artifact.digest));
  message.text(16, wandb_client_id(run.id + artifact.name));
  return WireMessage().integer(1, number).message(8, message).bytes();
}

WandbTableFile wandb_table_file(const NamedTable& table, int64_t step) {
  constexpr size_t kHashInName = 20;
  WandbTableFile file;
  file.text = split_form(table).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string hash = hex(sha256(file.text));
  file.path = fmt::format("media/table/{}_{}.table.json", step, hash.substr(0, kHashInName));
  const Json said = {{"_type", "table-file"},
                     {"path", file.path},
                     {"sha256", hash},
                     {"size", file.text.size()},
                     {"ncols", table.columns.size()},
                     {"nrows", table.rows.size()}};
  file.in_row = {table.name, said.dump()};
  return file;
}

std::string wandb_exit_message(int64_t number, int exit_code, double runtime_s) {
  WireMessage exit;
  if (exit_code != 0) exit.integer(1, exit_code);
  exit.integer(2, static_cast<int64_t>(runtime_s));
  return WireMessage().integer(1, number).message(18, exit).bytes();
}

}  // namespace tycho
