// Reads records, packs them into requests, and keeps count of what the server has.
#include "trainer/loggers/wandb_upload.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

// Limits of one request to the file stream.
constexpr size_t kMostBytes = 2 << 20, kMostLines = 2000;

/// List, in the folder of an attempt, of files and other things that the server has.
constexpr const char* kSentList = "/uploaded.txt";
constexpr const char* kExitSent = "exit";  // its line for the exit code, which is sent last

/// Lines, bytes and hash of the part of log.txt that the server has, in the folder of the first attempt.
constexpr const char* kConsoleFile = "/console.json";

std::string folder_of(const std::string& file) { return fs::path(file).parent_path().string(); }

bool is_sent(const std::string& folder, const std::string& name) {
  std::ifstream list(folder + kSentList);
  for (std::string line; std::getline(list, line);)
    if (line == name) return true;
  return false;
}

void note_sent(const std::string& folder, const std::string& name) {
  const auto list = real_files().append(folder + kSentList);
  const std::string line = name + "\n";
  list->write(line.data(), line.size());
  list->close();
}

/// Returns items as the JSON of one line.
template <class Items>
std::string line_of(const Items& items) {
  std::string line = "{";
  for (const auto& [name, json] : items) {
    if (line.size() > 1) line += ',';
    line += Json(name).dump(-1, ' ', false, Json::error_handler_t::replace) + ":" + json;
  }
  return line + "}";
}

/// Returns "2026-11-27 08:31:00 text", a local time, as W&B's console has it: in UTC, with microseconds.
std::string console_line(const std::string& line) {
  constexpr size_t kTimeBytes = 19;
  std::tm local{};
  const char* end = ::strptime(line.c_str(), "%Y-%m-%d %H:%M:%S", &local);
  if (end == nullptr || line.size() < kTimeBytes) return line;
  local.tm_isdst = -1;
  const std::time_t time = std::mktime(&local);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[kTimeBytes + 1];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return std::string(text) + ".000000" + line.substr(kTimeBytes);
}

/// Returns the config as W&B's file has it. Values are JSON, which is YAML.
std::string config_yaml(const Json& config) {
  std::string text;
  for (const auto& [key, value] : config.items())
    text += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) +
            ":\n    value: " + value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return text;
}

std::string metadata(const WandbRun& run) {
  const auto began = static_cast<std::time_t>(run.start_s);
  std::tm utc{};
  gmtime_r(&began, &utc);
  return Json{{"program", "tycho"},
              {"host", run.host},
              {"startedAt", fmt::format("{:%Y-%m-%dT%H:%M:%S}.000000Z", utc)},
              {"cpu_count_logical", std::thread::hardware_concurrency()}}
      .dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string read_file_or_empty(const std::string& path) { return fs::exists(path) ? read_file(path) : ""; }

Json file_part(int64_t offset, const std::vector<std::string>& lines) {
  return {{"offset", offset}, {"content", lines}};
}

}  // namespace

bool is_wholly_sent(const std::string& file) { return is_sent(folder_of(file), kExitSent); }

WandbUpload::WandbUpload(WandbServer& server, std::string run_dir, std::vector<std::string> files)
    : server_(server),
      run_dir_(std::move(run_dir)),
      console_file_(files.empty() ? "" : folder_of(files.front()) + kConsoleFile) {
  for (std::string& file : files) files_.emplace_back(std::move(file));
}

void WandbUpload::open() {
  // The newest attempt says what the run is.
  for (size_t i = files_.size(); i-- > 0 && !run_;) {
    WandbBlockFile file(files_[i].path());
    while (const std::optional<std::string> record = file.next()) {
      WandbEntry entry = read_wandb_entry(*record);
      if (auto* run = std::get_if<WandbRun>(&entry)) {
        run_ = std::move(*run);
        break;
      }
    }
  }
  if (!run_)
    fail(ExitCode::kUnusable, "[wandb] expected the record of a run in the files below {}, found none",
         run_dir_);
  remote_ = server_.open(*run_);
  if (!remote_->last_step) rows_to_skip_ = remote_->history_lines;
  find_console_place();
  for (const auto& [name, value] : remote_->summary.items())
    if (name != "_wandb") summary_[name] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool WandbUpload::is_full() const {
  return batch_.num_bytes >= kMostBytes || batch_.lines.size() >= kMostLines;
}

// A new attempt: how an earlier one ended no longer counts.
void WandbUpload::take(const WandbRun& run) {
  exit_code_.reset();
  num_alerts_ = 0;
  began_s_ = run.start_s;
  before_s_ = runtime_s_;
}

void WandbUpload::take(const WandbStepEntry& row) {
  for (const NamedText& item : row.items) summary_[item.name] = item.text;
  runtime_s_ = row.runtime_s();
  if (rows_to_skip_ > 0) {
    --rows_to_skip_;
    return;
  }
  if (row.step <= std::max(remote_->last_step.value_or(-1), batch_.last_step)) return;
  std::vector<std::pair<std::string, std::string>> items;
  for (const NamedText& item : row.items) items.emplace_back(item.name, item.text);
  batch_.rows.push_back(line_of(items));
  batch_.num_bytes += batch_.rows.back().size();
  batch_.last_step = row.step;
}

void WandbUpload::take(const WandbSystemEntry& numbers) {
  // Times go through the server's text.
  constexpr double kSameTime_s = 1e-3;
  if (remote_->last_event_s && numbers.time_s <= *remote_->last_event_s + kSameTime_s) return;
  const double runtime_s = before_s_ + std::max(0.0, numbers.time_s - began_s_);
  std::vector<std::pair<std::string, std::string>> items = {
      {"_wandb", "true"}, {"_timestamp", Json(numbers.time_s).dump()}, {"_runtime", Json(runtime_s).dump()}};
  for (const NamedText& item : numbers.items)
    items.emplace_back(item.name.starts_with('_') ? item.name : "system." + item.name, item.text);
  batch_.events.push_back(line_of(items));
  batch_.num_bytes += batch_.events.back().size();
}

void WandbUpload::wait_for_turn(Waiting waiting) {
  waiting.folder = folder_of(files_.front().path());
  if (!is_sent(waiting.folder, waiting.name)) waiting_.push_back(std::move(waiting));
}

void WandbUpload::take(const WandbFilesEntry& files) {
  for (const std::string& name : files.paths) wait_for_turn({name, "", {}});
}

void WandbUpload::take(const WandbAlertEntry& alert) {
  wait_for_turn({fmt::format("alert {}", ++num_alerts_), "", alert});
}

void WandbUpload::take(const WandbArtifact& artifact) {
  wait_for_turn({fmt::format("artifact {}", artifact.digest), "", artifact});
}

bool WandbUpload::fill_from_files() {
  while (!is_full()) {
    std::optional<std::string> record = files_.front().next();
    if (!record && files_.size() == 1) return false;
    if (!record) {
      files_.pop_front();
      continue;
    }
    std::visit([&](const auto& entry) { take(entry); }, read_wandb_entry(*record));
  }
  return true;
}

// The server tells how many lines it has, but not which. Lines of a start that never trained are taken out of
// log.txt again, so the same number of lines need not be the same lines.
void WandbUpload::find_console_place() {
  const Json known = Json::parse(read_file_or_empty(console_file_), nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* name) {
    return known.is_object() && known.contains(name) && known[name].is_number_integer()
               ? known[name].get<int64_t>()
               : 0;
  };
  const int64_t lines = number("lines"), bytes = number("bytes");
  const std::string text = read_file_or_empty(run_dir_ + "/log.txt");
  const bool is_same = lines <= remote_->log_lines && bytes <= static_cast<int64_t>(text.size()) &&
                       known.is_object() &&
                       known.value("hash", Json()) == hash_hex(text.substr(0, static_cast<size_t>(bytes)));
  log_line_ = is_same ? lines : 0;
  log_at_ = is_same ? bytes : 0;
  console_hash_.update(text.data(), static_cast<size_t>(log_at_));
  remote_->log_lines = log_line_;
}

void WandbUpload::keep_console_place() {
  const Json place = {{"lines", log_line_}, {"bytes", log_at_}, {"hash", console_hash_.hex()}};
  write_file_atomically(real_files(), console_file_, place.dump() + "\n");
}

bool WandbUpload::fill_from_log() {
  std::ifstream file(run_dir_ + "/log.txt", std::ios::binary);
  file.seekg(log_at_);
  for (std::string line; !is_full() && std::getline(file, line);) {
    if (file.eof()) return false;  // half-written
    log_at_ += static_cast<int64_t>(line.size()) + 1;
    ++log_line_;
    console_hash_.update((line + "\n").data(), line.size() + 1);
    batch_.lines.push_back(console_line(line));
    batch_.num_bytes += line.size();
  }
  return is_full();
}

bool WandbUpload::fill() {
  const bool more_rows = fill_from_files();
  return fill_from_log() || more_rows;
}

std::string WandbUpload::summary_line() const {
  std::map<std::string, std::string> all = summary_;
  all["_wandb"] = fmt::format(R"({{"runtime":{}}})", static_cast<int64_t>(runtime_s_));
  return line_of(all);
}

Json WandbUpload::request() const {
  Json files = Json::object();
  if (!batch_.rows.empty()) files["wandb-history.jsonl"] = file_part(remote_->history_lines, batch_.rows);
  if (!batch_.events.empty()) files["wandb-events.jsonl"] = file_part(remote_->event_lines, batch_.events);
  if (!batch_.lines.empty()) files["output.log"] = file_part(remote_->log_lines, batch_.lines);
  if (!batch_.rows.empty()) files["wandb-summary.json"] = file_part(0, {summary_line()});
  Json body = Json::object();
  if (!files.empty()) body["files"] = std::move(files);
  if (!batch_.uploaded.empty()) body["uploaded"] = batch_.uploaded;
  return body;
}

void WandbUpload::post() {
  const Json body = request();
  if (!body.empty()) server_.stream(body);
  remote_->history_lines += static_cast<int64_t>(batch_.rows.size());
  remote_->event_lines += static_cast<int64_t>(batch_.events.size());
  remote_->log_lines += static_cast<int64_t>(batch_.lines.size());
  if (batch_.last_step >= 0) remote_->last_step = batch_.last_step;
  num_sent_rows_ += static_cast<int64_t>(batch_.rows.size());
  has_sent_lines_ = has_sent_lines_ || !batch_.lines.empty();
  batch_ = {};
}

void WandbUpload::send() {
  if (!remote_) open();
  for (bool more = true; more;) {
    more = fill();
    post();
  }
  if (std::exchange(has_sent_lines_, false)) keep_console_place();
  send_waiting();
}

void WandbUpload::send_waiting() {
  while (!waiting_.empty()) {
    const Waiting& waiting = waiting_.front();
    try {
      send(waiting);
    } catch (const Error& error) {
      // A server without alerts or artifacts must not keep rows from being sent.
      const bool is_file = std::holds_alternative<std::monostate>(waiting.entry);
      if (is_file || error.code() != ExitCode::kUnusable || server_.refuses_all()) throw;
      refusal_ = error.what();
    }
    note_sent(waiting.folder, waiting.name);
    waiting_.pop_front();
  }
}

void WandbUpload::send(const Waiting& waiting) {
  if (const auto* alert = std::get_if<WandbAlertEntry>(&waiting.entry)) return server_.alert(*alert);
  if (const auto* artifact = std::get_if<WandbArtifact>(&waiting.entry)) return server_.store(*artifact);
  const std::string path = waiting.folder + "/files/" + waiting.name;
  if (fs::exists(path)) put({{waiting.name, read_file(path)}});
}

void WandbUpload::put(std::vector<std::pair<std::string, std::string>> contents) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : contents) names.push_back(name);
  for (const WandbUploadTarget& target : server_.targets(names))
    for (auto& [name, bytes] : contents)
      if (name == target.name) {
        server_.put(target, std::move(bytes));
        batch_.uploaded.push_back(name);
      }
}

void WandbUpload::send_rows(const std::vector<WandbStepEntry>& rows) {
  for (const WandbStepEntry& row : rows) {
    take(row);
    if (is_full()) post();
  }
  post();
}

void WandbUpload::beat() { server_.stream(Json::object()); }

// The last line does not count as sent: the next start sends what log.txt has at its place.
void WandbUpload::end(const std::string& last_line) {
  put({{"config.yaml", config_yaml(run_->config)},
       {"wandb-metadata.json", metadata(*run_)},
       {"wandb-summary.json", summary_line()},
       {"output.log",
        read_file_or_empty(run_dir_ + "/log.txt") + (last_line.empty() ? "" : last_line + "\n")}});
  Json body = request();
  batch_ = {};
  body["files"]["wandb-summary.json"] = file_part(0, {summary_line()});
  if (!last_line.empty())
    body["files"]["output.log"] = file_part(remote_->log_lines, {console_line(last_line)});
  if (exit_code_) {
    body["complete"] = true;
    body["exitcode"] = *exit_code_;
  }
  server_.stream(body);
  if (const std::string folder = folder_of(files_.back().path()); exit_code_ && !is_sent(folder, kExitSent))
    note_sent(folder, kExitSent);
}

}  // namespace tycho
