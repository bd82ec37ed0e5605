// Compares every use of memory with those before it, by vector clocks.
#include "tests/standin_gpu/runtime/order.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

namespace standin {

void Order::join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

bool Order::covers(const Clock& clock, const Clock& other) {
  for (size_t i = 0; i < other.size(); ++i)
    if (other[i] > (i < clock.size() ? clock[i] : 0)) return false;
  return true;
}

Order::Clock& Order::clock_of(int actor) {
  const auto at = static_cast<size_t>(actor);
  if (clocks_.size() <= at) {
    clocks_.resize(at + 1), before_newest_.resize(at + 1);
    is_stream_.resize(at + 1, false);
  }
  if (clocks_[at].size() <= at) clocks_[at].resize(at + 1);
  if (clocks_[at][at] == 0) clocks_[at][at] = 1;
  return clocks_[at];
}

void Order::tick(int actor) { ++clock_of(actor)[static_cast<size_t>(actor)]; }

bool Order::is_done(long event, int stream) const {
  if (event < 0) {
    const auto at = static_cast<size_t>(stream);
    return at >= clocks_.size() || covers(waited_, clocks_[at]);
  }
  const auto found = marks_.find(event);
  return found == marks_.end() || covers(waited_, found->second.clock);
}

bool Order::is_told_early() {
  ++num_not_done_;
  return mutant_.kind == Mutant::Kind::kEarlyDone && mutant_.step == step_ && mutant_.number == num_not_done_;
}

bool Order::is_left_out(const Action& action, const Clock& waiter, const Clock& waited) {
  ++num_waits_;
  if (mutant_.kind != Mutant::Kind::kNoWait || mutant_.step != step_ || mutant_.number != num_waits_)
    return false;
  changed_ = "the wait of " + action.name;
  changed_nothing_ = covers(waiter, waited);
  return true;
}

void Order::wait(const Action& action, int waiter, const Clock& waited, bool is_host) {
  Clock& own = clock_of(waiter);
  if (is_left_out(action, own, waited)) return;
  join(own, waited);
  if (is_host) join(waited_, waited);
}

void Order::record(const Action& action) {
  const Clock given = clock_of(action.thread);
  Clock& stream = clock_of(action.stream);
  is_stream_[static_cast<size_t>(action.stream)] = true;
  ++num_records_;
  Clock marked = stream;
  const bool is_early =
      mutant_.kind == Mutant::Kind::kEarlyRecord && mutant_.step == step_ && mutant_.number == num_records_;
  if (is_early) marked = before_newest_[static_cast<size_t>(action.stream)];
  join(stream, given), join(marked, given);
  if (is_early) {
    changed_ = "the record of " + action.name;
    changed_nothing_ = covers(marked, stream);
  }
  marks_[action.event] = {std::move(marked), action.stream, action.name};
  tick(action.thread);
}

std::optional<std::string> Order::apply(const Action& action) {
  using Kind = Action::Kind;
  clock_of(std::max(action.thread, action.stream)), clock_of(action.thread);
  if (action.stream >= 0) clock_of(action.stream);
  switch (action.kind) {
    case Kind::kEnqueue: {
      Clock& stream = clock_of(action.stream);
      is_stream_[static_cast<size_t>(action.stream)] = true;
      before_newest_[static_cast<size_t>(action.stream)] = stream;
      join(stream, clock_of(action.thread));
      tick(action.stream), tick(action.thread);
      return use(action, action.stream);
    }
    case Kind::kHost: return use(action, action.thread);
    case Kind::kRecord: record(action); return {};
    case Kind::kStreamWait:
    case Kind::kEventWait: {
      const auto found = marks_.find(action.event);
      if (found == marks_.end())
        return action.name + " in step " + std::to_string(step_) +
               " waits for an event that was not recorded";
      const bool is_host = action.kind == Kind::kEventWait;
      if (!is_host) {
        join(clock_of(action.stream), clock_of(action.thread));
        tick(action.thread);
      }
      wait(action, is_host ? action.thread : action.stream, found->second.clock, is_host);
      return {};
    }
    case Kind::kActorWait: {
      Clock all;
      for (size_t i = 0; i < clocks_.size(); ++i)
        if (is_stream_[i] && (action.stream < 0 || static_cast<int>(i) == action.stream))
          join(all, clocks_[i]);
      wait(action, action.thread, all, /*is_host=*/true);
      return {};
    }
    case Kind::kDone:
    case Kind::kTakeOver:
      if (action.event < 0) {
        join(clock_of(action.thread), clock_of(action.stream));
      } else if (const auto found = marks_.find(action.event); found != marks_.end()) {
        join(clock_of(action.thread), found->second.clock);
      }
      return {};
    case Kind::kEndEvent: marks_.erase(action.event); return {};
    case Kind::kHandOver:
      join(marks_[action.event].clock, clock_of(action.thread));
      tick(action.thread);
      return {};
    case Kind::kFree:
      for (const Bytes& bytes : action.writes) forget(bytes);
      return {};
    case Kind::kStep:
      ++step_;
      num_waits_ = num_records_ = num_not_done_ = 0;
      return {};
  }
  return {};
}

std::optional<std::string> Order::use(const Action& action, int actor) {
  if (action.reads.empty() && action.writes.empty()) return {};
  const Use use = {actor, clock_of(actor)[static_cast<size_t>(actor)], static_cast<int>(sites_.size())};
  sites_.push_back({actor, step_, action.name});
  paired_.clear();
  for (const Bytes& bytes : action.reads)
    if (auto found = touch(bytes, /*writes=*/false, use)) return found;
  for (const Bytes& bytes : action.writes)
    if (auto found = touch(bytes, /*writes=*/true, use)) return found;
  return {};
}

void Order::split(uintptr_t at) {
  auto behind = segments_.upper_bound(at);
  if (behind == segments_.begin()) return;
  auto& [begin, segment] = *std::prev(behind);
  if (begin == at || segment.end <= at) return;
  Segment rest = segment;
  segment.end = at;
  segments_.emplace(at, std::move(rest));
}

void Order::forget(const Bytes& bytes) {
  split(bytes.begin), split(bytes.end);
  segments_.erase(segments_.lower_bound(bytes.begin), segments_.lower_bound(bytes.end));
}

std::optional<std::string> Order::check(const Bytes& at, const Use& before, bool wrote, const Use& use,
                                        bool writes) {
  if (before.actor < 0 || before.actor == use.actor) return {};
  const Clock& own = clock_of(use.actor);
  const auto actor = static_cast<size_t>(before.actor);
  if (actor < own.size() && own[actor] >= before.time) {
    if (paired_.insert(before.site).second)
      ++(is_stream_[actor] && is_stream_[static_cast<size_t>(use.actor)] ? num_stream_pairs_
                                                                         : num_host_pairs_);
    return {};
  }
  char bytes[64];
  std::snprintf(bytes, sizeof bytes, " [%#zx, %#zx): ", static_cast<size_t>(at.begin),
                static_cast<size_t>(at.end));
  return "nothing orders two uses of the bytes" + std::string(bytes) + text_of(before, wrote) + ", and " +
         text_of(use, writes);
}

std::optional<std::string> Order::touch(const Bytes& bytes, bool writes, const Use& use) {
  if (bytes.begin >= bytes.end) return {};
  split(bytes.begin), split(bytes.end);
  uintptr_t at = bytes.begin;
  auto next = segments_.lower_bound(bytes.begin);
  for (; next != segments_.end() && next->first < bytes.end; ++next) {
    const Bytes part = {next->first, next->second.end};
    Segment& segment = next->second;
    if (auto found = check(part, segment.write, true, use, writes)) return found;
    if (!writes) {
      if (part.begin > at) segments_.emplace(at, Segment{part.begin, {}, {use}});
      // A read that came before this one needs no longer be remembered: what follows this follows that.
      const Clock& own = clock_of(use.actor);
      std::erase_if(segment.reads, [&](const Use& read) {
        const auto actor = static_cast<size_t>(read.actor);
        return actor < own.size() && own[actor] >= read.time;
      });
      segment.reads.push_back(use);
    } else {
      for (const Use& read : segment.reads)
        if (auto found = check(part, read, false, use, writes)) return found;
    }
    at = part.end;
  }
  if (!writes) {
    if (at < bytes.end) segments_.emplace(at, Segment{bytes.end, {}, {use}});
    return {};
  }
  segments_.erase(segments_.lower_bound(bytes.begin), next);
  segments_.emplace(bytes.begin, Segment{bytes.end, use, {}});
  return {};
}

std::string Order::text_of(const Use& use, bool writes) const {
  const Site& site = sites_.at(static_cast<size_t>(use.site));
  const bool is_stream = is_stream_[static_cast<size_t>(site.actor)];
  return std::string(writes ? "a write by " : "a read by ") + site.name +
         (is_stream ? " on stream " : " on thread ") + std::to_string(site.actor) + " in step " +
         std::to_string(site.step);
}

std::string line_of(const Action& action) {
  std::ostringstream line;
  line << static_cast<int>(action.kind) << ' ' << action.thread << ' ' << action.stream << ' ' << action.event
       << std::hex;
  for (const auto* list : {&action.reads, &action.writes}) {
    line << ' ' << list->size();
    for (const Bytes& bytes : *list) line << ' ' << bytes.begin << ' ' << bytes.end;
  }
  line << '\t' << action.name;
  return line.str();
}

Action action_of(const std::string& text) {
  std::istringstream line(text);
  Action action;
  int kind = 0;
  line >> kind >> action.thread >> action.stream >> action.event >> std::hex;
  action.kind = static_cast<Action::Kind>(kind);
  for (auto* list : {&action.reads, &action.writes}) {
    size_t count = 0;
    line >> count;
    list->resize(count);
    for (Bytes& bytes : *list) line >> bytes.begin >> bytes.end;
  }
  std::getline(line.ignore(), action.name);
  return action;
}

}  // namespace standin
