// The monitor of every rank but rank 0. Torch-free.
#pragma once
#include "trainer/rendezvous/meet/control_line.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/meet/meet_options.h"
#include "trainer/rendezvous/meet/monitor.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

class MemberMonitor final : public Monitor {
 public:
  /// `to_rank_0`: connection on which both ends have proved themselves.
  MemberMonitor(const RankInfo& place, MeetOptions options, Member self, Socket to_rank_0);
  ~MemberMonitor() override { end(); }

 private:
  std::vector<ControlLine*> lines() override;
  void serve(ControlLine& line) override;
  void tick() override;
  void obey() override;
  void on_broken() override;
  bool may_end() override;
  std::optional<bool> answer(const MarkQuestion& question) override;

  void take(ControlMessage what, const std::string& body);
  /// Stores what rank 0 does, and says once that it is at a prompt.
  void take_report(ProgressReport report);
  void lose(const std::string& how);

  ControlLine line_;
  int silent_beats_ = 0;
  bool said_prompt_ = false;
};

}  // namespace tycho
