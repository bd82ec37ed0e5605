// The monitor of rank 0: accepts the other ranks, collects their reports, and decides how a run ends.
// Torch-free.
#pragma once
#include <list>
#include <set>
#include <string>
#include <vector>

#include "trainer/rendezvous/meet/control_line.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/meet/meet_options.h"
#include "trainer/rendezvous/meet/monitor.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

class RootMonitor final : public Monitor {
 public:
  RootMonitor(const RankInfo& place, MeetOptions options, Member self);
  ~RootMonitor() override { end(); }

  /// Adds the line of a rank that has proved itself. From any thread.
  void admit(Socket socket);
  /// Asks the other ranks for their last collectives. From any thread.
  void pass_on(const std::string& request);

 private:
  struct Line final : ControlLine {
    explicit Line(Socket socket) : ControlLine(std::move(socket)) {}
    int rank = -1;  // -1 until it has introduced itself
    int silent_beats = 0;
    bool has_heard = false;
  };
  struct Suspected {
    LossReport report;
    Clock::time_point decide_at;
  };

  std::vector<ControlLine*> lines() override;
  void serve(ControlLine& line) override;
  void tick() override;
  void obey() override;
  Clock::time_point next() const override;
  void on_broken() override;
  bool may_end() override;
  std::optional<bool> answer(const MarkQuestion& question) override;

  void take(Line& line, ControlMessage what, const std::string& body);
  void introduce(Line& line, Member member);
  void complete();
  void suspect(LossReport report);
  void lose(int rank, const std::string& how);
  /// Asks all ranks for their last collectives, once each time that a rank waits too long in a collective.
  void look_for_hang();
  void decide();

  std::list<Line> lines_;
  std::set<std::string> marks_;
  std::vector<int> lost_;  // ranks lost so far; others may be lost within the same moment
  std::string how_lost_;
  Clock::time_point decide_at_ = Clock::time_point::max();
  std::optional<Suspected> suspected_;
  std::vector<std::string> requests_;  // for obey()
  bool has_hung_ = false;              // a rank hangs, and its collectives were asked for
};

}  // namespace tycho
