// Reports to rank 0 and follows its decisions; decides by itself only that rank 0 is lost.
#include "trainer/rendezvous/meet/member_monitor.h"

#include <utility>

namespace tycho {

MemberMonitor::MemberMonitor(const RankInfo& place, MeetOptions options, Member self, Socket to_rank_0)
    : Monitor(place, std::move(options), std::move(self)), line_(std::move(to_rank_0)) {
  line_.say(ControlMessage::kIntroduction, bytes_of(self_));
  begin();
}

std::vector<ControlLine*> MemberMonitor::lines() {
  if (!line_.is_open()) return {};
  return {&line_};
}

void MemberMonitor::serve(ControlLine&) {
  if (line_.read([&](ControlMessage what, const std::string& body) { take(what, body); })) return;
  lose("has died: its connection closed");
}

void MemberMonitor::take(ControlMessage what, const std::string& body) {
  silent_beats_ = 0;
  switch (what) {
    case ControlMessage::kBeat: return take_report(read_report(body));
    case ControlMessage::kMember: return roster_.add(read_member(body));
    case ControlMessage::kAllHere: world_ = read_text(body); return;
    case ControlMessage::kTurnedAway: return set_cause({place_.rank, ExitCode::kTopology, read_text(body)});
    case ControlMessage::kBroken: set_cause(read_cause(body)); return line_.say(ControlMessage::kHeard);
    case ControlMessage::kTold: {
      const MarkAnswer answer = read_mark_answer(body);
      answers_[answer.number] = answer.is_marked;
      return;
    }
    case ControlMessage::kAnswerRequest:
      if (options_.on_request) options_.on_request(read_text(body));
      return;
    case ControlMessage::kBye: roster_.set_ended(0); return line_.close();
    default: return;
  }
}

void MemberMonitor::take_report(ProgressReport report) {
  const bool at_prompt = report.phase == kAtPrompt;
  if (at_prompt && !std::exchange(said_prompt_, true))
    write_line(
        fmt::format("[ranks] rank {} waits for rank 0, which is {} after step {}, for at most {} minutes\n",
                    place_.rank, report.phase, report.step, kTimeAtPrompt.count()));
  if (!at_prompt) said_prompt_ = false;
  roster_.set_report(0, std::move(report));
}

void MemberMonitor::tick() {
  if (line_.is_open() && ++silent_beats_ > num_silent_beats())
    lose(fmt::format("has not answered for {:g} s", options_.silence_s));
}

void MemberMonitor::lose(const std::string& how) {
  line_.close();
  if (!roster_.has_ended(0)) set_cause(roster_.gone({0}, how));
}

void MemberMonitor::on_broken() { all_have_heard_ = true; }

void MemberMonitor::obey() {
  if (!line_.is_open()) {  // rank 0 can no longer be asked
    if (aborting_) set_cause(std::move(*std::exchange(aborting_, std::nullopt)));
    if (loss_report_) {
      const LossReport report = *std::exchange(loss_report_, std::nullopt);
      set_cause(roster_.unreachable(roster_.has_ended(0) ? std::vector<int>{0} : report.ranks, report.what));
    }
    return;
  }
  if (const auto cause = std::exchange(aborting_, std::nullopt))
    line_.say(ControlMessage::kAbort, bytes_of(*cause));
  if (const auto report = std::exchange(loss_report_, std::nullopt))
    line_.say(ControlMessage::kSuspect, bytes_of(*report));
  for (const MarkQuestion& question : std::exchange(questions_, {}))
    line_.say(ControlMessage::kAsk, bytes_of(question));
}

bool MemberMonitor::may_end() {
  if (cause_ || !line_.is_open()) return !line_.has_unsent();
  if (!std::exchange(said_bye_, true)) line_.say(ControlMessage::kBye);
  return false;  // rank 0 closes the line, and then this rank may end
}

std::optional<bool> MemberMonitor::answer(const MarkQuestion&) {
  if (line_.is_open()) return std::nullopt;
  if (cause_) throw Error(cause_->text, cause_->code);
  return false;
}

}  // namespace tycho
