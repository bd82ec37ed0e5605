// The rank that was lost first is the cause, which rank 0 sends to the others.
#include "trainer/rendezvous/meet/root_monitor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "trainer/base/random/random_bytes.h"
#include "trainer/rendezvous/endpoint.h"

namespace tycho {
namespace {

constexpr auto kTogether = std::chrono::milliseconds(100);  // ranks of one machine are lost together
constexpr auto kOwnWords =
    std::chrono::milliseconds(1000);  // for a suspect to give its reason, or to be recognised as lost
constexpr size_t kWorldBytes = 16, kRequestBytes = 16;

}  // namespace

RootMonitor::RootMonitor(const RankInfo& place, MeetOptions options, Member self)
    : Monitor(place, std::move(options), std::move(self)) {
  if (place.num_ranks == 1) complete();
  begin();
}

void RootMonitor::admit(Socket socket) {
  const std::lock_guard lock(mutex_);
  lines_.emplace_back(std::move(socket));
  wake();
}

void RootMonitor::pass_on(const std::string& request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(request);
  wake();
}

std::vector<ControlLine*> RootMonitor::lines() {
  lines_.remove_if([](const Line& line) { return !line.is_open(); });
  std::vector<ControlLine*> all;
  for (Line& line : lines_) all.push_back(&line);
  return all;
}

void RootMonitor::serve(ControlLine& which) {
  auto& line = static_cast<Line&>(which);
  if (line.read([&](ControlMessage what, const std::string& body) { take(line, what, body); })) return;
  line.close();
  if (line.rank >= 0 && !roster_.has_ended(line.rank))
    lose(line.rank, "has died: its connection to rank 0 closed");
}

void RootMonitor::take(Line& line, ControlMessage what, const std::string& body) {
  line.silent_beats = 0;
  if (what == ControlMessage::kIntroduction) return introduce(line, read_member(body));
  if (line.rank < 0) return line.close();
  switch (what) {
    case ControlMessage::kBeat: return roster_.set_report(line.rank, read_report(body));
    case ControlMessage::kAbort: return set_cause(read_cause(body));
    case ControlMessage::kSuspect: return suspect(read_loss_report(body));
    case ControlMessage::kHeard: line.has_heard = true; return;
    case ControlMessage::kAsk: {
      const MarkQuestion question = read_mark_question(body);
      return line.say(ControlMessage::kTold, bytes_of(MarkAnswer{question.number, *answer(question)}));
    }
    case ControlMessage::kBye: roster_.set_ended(line.rank); return line.close();
    default: return;  // sent by a rank, so it is harmless
  }
}

void RootMonitor::introduce(Line& line, Member member) {
  if (line.rank >= 0 || member.rank <= 0 || member.rank >= place_.num_ranks) return line.close();
  if (cause_) {
    line.say(ControlMessage::kBroken, bytes_of(*cause_));
    return line.close();
  }
  if (roster_.find(member.rank) != nullptr) {
    line.say(ControlMessage::kTurnedAway,
             bytes_of_text(
                 fmt::format("[ranks] rank {} of this run is already there: {}. Two processes have the same "
                             "rank, or one of them was started again",
                             member.rank, roster_.describe(member.rank))));
    return line.close();
  }
  if (member.address == "0.0.0.0" || member.address == "::") member.address = remote_end(line.fd()).host();
  line.rank = member.rank;
  line.say(ControlMessage::kMember, bytes_of(self_));  // so that it can name rank 0 before all have come
  roster_.add(std::move(member));
  if (roster_.is_complete()) complete();
}

void RootMonitor::complete() {
  world_ = random_hex(kWorldBytes);
  for (Line& line : lines_) {
    if (line.rank < 0) continue;
    for (const auto& [rank, member] : roster_.members()) line.say(ControlMessage::kMember, bytes_of(member));
    line.say(ControlMessage::kAllHere, bytes_of_text(world_));
  }
}

void RootMonitor::tick() {
  for (Line& line : lines_)
    if (line.rank >= 0 && ++line.silent_beats == num_silent_beats() + 1) {
      lose(line.rank, fmt::format("has not answered for {:g} s", options_.silence_s));
      line.close();
    }
  look_for_hang();
}

// Ignores waits while a user sits at a prompt.
void RootMonitor::look_for_hang() {
  if (world_.empty() || cause_ || ends_ || !options_.on_request || options_.progress->is_prompt()) return;
  const bool hangs = roster_.hangs(options_.hang_s);
  if (hangs == std::exchange(has_hung_, hangs) || !hangs) return;
  const std::string request = random_hex(kRequestBytes);
  requests_.push_back(request);
  options_.on_request(request);
}

void RootMonitor::lose(int rank, const std::string& how) {
  if (cause_) return;
  if (lost_.empty()) {
    how_lost_ = how;
    decide_at_ = Clock::now() + kTogether;
  }
  lost_.push_back(rank);
}

void RootMonitor::suspect(LossReport report) {
  if (!suspected_) suspected_ = {std::move(report), Clock::now() + kOwnWords};
}

void RootMonitor::decide() {
  const auto now = Clock::now();
  if (cause_) return;
  if (!lost_.empty() && now >= decide_at_) {
    std::sort(lost_.begin(), lost_.end());
    std::string how = how_lost_;
    if (world_.empty()) {
      const std::vector<int> others = roster_.missing();
      how += fmt::format(", while rank{} {} had not come yet", others.size() > 1 ? "s" : "",
                         fmt::join(others, ", "));
    }
    return set_cause(roster_.gone(lost_, how));
  }
  if (!suspected_) return;
  const std::vector<int>& ranks = suspected_->report.ranks;
  if (!roster_.ended(ranks).empty() || now >= suspected_->decide_at)
    set_cause(roster_.unreachable(ranks, suspected_->report.what));
}

void RootMonitor::obey() {
  if (auto cause = std::exchange(aborting_, std::nullopt)) set_cause(std::move(*cause));
  if (auto report = std::exchange(loss_report_, std::nullopt)) suspect(std::move(*report));
  for (const std::string& request : std::exchange(requests_, {}))
    for (Line& line : lines_)
      if (line.rank >= 0) line.say(ControlMessage::kAnswerRequest, bytes_of_text(request));
  decide();
  if (!cause_) return;
  const bool before = all_have_heard_;
  all_have_heard_ = std::all_of(lines_.begin(), lines_.end(), [](const Line& line) {
    return !line.is_open() || line.rank < 0 || line.has_heard;
  });
  if (all_have_heard_ != before) changed_.notify_all();
}

RootMonitor::Clock::time_point RootMonitor::next() const {
  if (cause_) return Clock::time_point::max();
  auto next = Clock::time_point::max();
  if (!lost_.empty()) next = decide_at_;
  if (suspected_) next = std::min(next, suspected_->decide_at);
  return next;
}

void RootMonitor::on_broken() {
  for (Line& line : lines_) line.say(ControlMessage::kBroken, bytes_of(*cause_));
}

bool RootMonitor::may_end() {
  if (cause_) return all_have_heard_;
  if (!std::exchange(said_bye_, true))
    for (Line& line : lines_) line.say(ControlMessage::kBye);
  return lines().empty();  // each closes its line when it has heard
}

std::optional<bool> RootMonitor::answer(const MarkQuestion& question) {
  if (question.sets) marks_.insert(question.name);
  return marks_.count(question.name) > 0;
}

}  // namespace tycho
