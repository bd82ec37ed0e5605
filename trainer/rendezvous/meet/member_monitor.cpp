// Reports to rank 0 and follows its decisions; decides by itself only that rank 0 is lost.
#include "trainer/rendezvous/meet/member_monitor.h"

#include <utility>

namespace tycho {

MemberMonitor::MemberMonitor(const RankInfo& place, MeetOptions options, Member self, Socket to_rank_0)
    : Monitor(place, std::move(options), std::move(self)), line_(std::move(to_rank_0)) {
  line_.say(Says::kIntroduction, bytes_of(self_));
  begin();
}

std::vector<ControlLine*> MemberMonitor::lines() {
  if (!line_.is_open()) return {};
  return {&line_};
}

void MemberMonitor::serve(ControlLine&) {
  if (line_.read([&](Says what, const std::string& body) { take(what, body); })) return;
  lose("has died: its connection closed");
}

void MemberMonitor::take(Says what, const std::string& body) {
  silent_beats_ = 0;
  switch (what) {
    case Says::kBeat: reports_[0] = read_report(body); return;
    case Says::kMember: {
      Member member = read_member(body);
      members_[member.rank] = std::move(member);
      return;
    }
    case Says::kAllHere: world_ = read_text(body); return;
    case Says::kTurnedAway: return set_cause({place_.rank, ExitCode::kTopology, read_text(body)});
    case Says::kBroken: set_cause(read_cause(body)); return line_.say(Says::kHeard);
    case Says::kTold: {
      const MarkAnswer answer = read_mark_answer(body);
      answers_[answer.number] = answer.is_marked;
      return;
    }
    case Says::kAnswerRequest:
      if (options_.on_request) options_.on_request(read_text(body));
      return;
    case Says::kBye: set_ended(0); return line_.close();
    default: return;
  }
}

void MemberMonitor::tick() {
  if (line_.is_open() && ++silent_beats_ > num_silent_beats())
    lose(fmt::format("has not answered for {:g} s", options_.silence_s));
}

void MemberMonitor::lose(const std::string& how) {
  line_.close();
  if (!has_ended(0)) set_cause(gone({0}, how));
}

void MemberMonitor::on_broken() { all_have_heard_ = true; }

void MemberMonitor::obey() {
  if (!line_.is_open()) {  // rank 0 can no longer be asked
    if (aborting_) set_cause(std::move(*std::exchange(aborting_, std::nullopt)));
    if (suspicion_) {
      const Suspicion suspicion = *std::exchange(suspicion_, std::nullopt);
      set_cause(unreachable(has_ended(0) ? std::vector<int>{0} : suspicion.ranks, suspicion.what));
    }
    return;
  }
  if (const auto cause = std::exchange(aborting_, std::nullopt)) line_.say(Says::kAbort, bytes_of(*cause));
  if (const auto suspicion = std::exchange(suspicion_, std::nullopt))
    line_.say(Says::kSuspect, bytes_of(*suspicion));
  for (const MarkQuestion& question : std::exchange(questions_, {}))
    line_.say(Says::kAsk, bytes_of(question));
}

bool MemberMonitor::may_end() {
  if (cause_ || !line_.is_open()) return !line_.has_unsent();
  if (!std::exchange(said_bye_, true)) line_.say(Says::kBye);
  return false;  // rank 0 closes the line, and then this rank may end
}

std::optional<bool> MemberMonitor::answer(const MarkQuestion&) {
  if (line_.is_open()) return std::nullopt;
  if (cause_) throw Error(cause_->text, cause_->code);
  return false;
}

}  // namespace tycho
