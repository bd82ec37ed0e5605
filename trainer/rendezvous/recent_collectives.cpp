// A ring under a lock that is held for some tens of nanoseconds: only a new group allocates memory.
#include "trainer/rendezvous/recent_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

thread_local std::string_view unit_of_thread;

constexpr std::array<const char*, 5> kStates = {"queued", "on device", "started", "done", "failed"};

bool is_message(const CollectiveCall& call) {
  const std::string_view op = call.op;
  return op == "send" || op == "recv";
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

int RecentCollectives::add_group(std::string name, std::vector<int> ranks) {
  const std::lock_guard lock(mutex_);
  groups_.push_back({std::move(name), std::move(ranks), 0, {}});
  return static_cast<int>(groups_.size()) - 1;
}

void RecentCollectives::name_group(int group, std::string name) {
  const std::lock_guard lock(mutex_);
  groups_.at(static_cast<size_t>(group)).name = std::move(name);
}

void RecentCollectives::set_coordinates(std::vector<std::pair<std::string, int>> coordinates) {
  const std::lock_guard lock(mutex_);
  coordinates_ = std::move(coordinates);
}

int64_t& RecentCollectives::count_of(Group& group, const CollectiveCall& call) {
  if (!is_message(call)) return group.num_calls;
  for (Messages& messages : group.messages)
    if (messages.peer == call.peer && std::string_view(messages.op) == call.op) return messages.count;
  return group.messages.emplace_back(Messages{call.op, call.peer}).count;
}

uint64_t RecentCollectives::add(int group, const CollectiveCall& call, State state) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  const uint64_t ticket = num_calls_++;
  Entry& entry = entries_[ticket % kKept];
  entry.ticket = ticket;
  entry.number = count_of(groups_[static_cast<size_t>(group)], call)++;
  entry.call = call;
  entry.group = group;
  entry.state = state;
  entry.step = progress_.copy_place(entry.phase);
  const size_t length = unit_of_thread.copy(entry.unit.data(), kUnitChars);
  entry.unit[length] = '\0';
  entry.added = entry.started = now;
  return ticket;
}

void RecentCollectives::set_state(uint64_t ticket, State state) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[ticket % kKept];
  if (entry.ticket != ticket) return;
  entry.state = state;
  (state == State::kStarted ? entry.started : entry.ended) = now;
}

void RecentCollectives::device_is_done() {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_)
    if (entry.state == State::kOnDevice) entry.state = State::kDone, entry.ended = now;
}

std::string_view RecentCollectives::set_unit(std::string_view unit) {
  return std::exchange(unit_of_thread, unit);
}

void RecentCollectives::keep_in(std::string folder, CollectivesOrigin origin) {
  const std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
  origin_ = std::move(origin);
}

std::string RecentCollectives::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

void RecentCollectives::write(const std::string& cause) {
  const std::string folder = this->folder();
  if (folder.empty()) return;
  const std::lock_guard lock(file_mutex_);
  has_ended_ = true;
  write_file(folder, cause, "");
}

void RecentCollectives::answer(const std::string& request) {
  const std::string folder = this->folder();
  if (folder.empty()) return;
  const std::lock_guard lock(file_mutex_);
  if (!has_ended_) write_file(folder, "", request);
}

void RecentCollectives::write_file(const std::string& folder, const std::string& cause,
                                   const std::string& request) const {
  Json all = json();
  all["cause"] = cause;
  all["request"] = request;
  make_dirs(real_files(), folder);
  const auto rank = all.at("rank").get<int>();
  write_file_atomically(real_files(), fmt::format("{}/rank-{:05}.json", folder, rank),
                        all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json RecentCollectives::json() const {
  const auto now = Clock::now();
  const ProgressReport doing = progress_.report();
  const std::lock_guard lock(mutex_);
  Json groups = Json::array(), calls = Json::array(), coordinates = Json::object();
  for (const auto& [axis, at] : coordinates_) coordinates[axis] = at;
  for (const Group& group : groups_) {
    Json messages = Json::array();
    for (const Messages& one : group.messages)
      messages.push_back(
          {{"verb", one.op}, {"peer", group.ranks.at(static_cast<size_t>(one.peer))}, {"calls", one.count}});
    groups.push_back({{"name", group.name},
                      {"ranks", group.ranks},
                      {"calls", group.num_calls},
                      {"messages", std::move(messages)}});
  }
  const uint64_t first = num_calls_ > kKept ? num_calls_ - kKept : 0;
  for (uint64_t ticket = first; ticket < num_calls_; ++ticket)
    calls.push_back(entry_json(entries_[ticket % kKept], now));
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {{"rank", origin_.rank},
          {"num_ranks", origin_.num_ranks},
          {"host", origin_.host},
          {"pid", origin_.pid},
          {"world", origin_.world},
          {"time", std::chrono::duration<double>(since_1970).count()},
          {"cause", ""},
          {"request", ""},
          {"doing", progress_text(doing)},
          {"coordinates", std::move(coordinates)},
          {"num_calls", num_calls_},
          {"groups", std::move(groups)},
          {"calls", std::move(calls)}};
}

/// Returns an entry as JSON. Times are in seconds: since the call, the wait for its turn and its duration,
/// until now if it is not done.
Json RecentCollectives::entry_json(const Entry& entry, Clock::time_point now) const {
  const bool has_started = entry.state != State::kQueued;
  const bool has_ended = entry.state == State::kDone || entry.state == State::kFailed;
  Json json = {{"sequence", entry.ticket}, {"group", entry.group},      {"number", entry.number},
               {"verb", entry.call.op},    {"dtype", entry.call.dtype}, {"num_bytes", entry.call.num_bytes}};
  if (entry.call.peer >= 0)
    json["peer"] = groups_[static_cast<size_t>(entry.group)].ranks.at(static_cast<size_t>(entry.call.peer));
  json["step"] = entry.step;
  json["phase"] = entry.phase.data();
  if (entry.unit[0] != '\0') json["unit"] = entry.unit.data();
  json["state"] = kStates[static_cast<size_t>(entry.state)];
  json["ago_s"] = seconds(now - entry.added);
  json["queued_s"] = seconds((has_started ? entry.started : now) - entry.added);
  if (has_started) json["took_s"] = seconds((has_ended ? entry.ended : now) - entry.started);
  return json;
}

}  // namespace tycho
