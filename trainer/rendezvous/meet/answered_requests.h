// Writes a rank's last collectives on request, while the run trains or hangs. Torch-free.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "trainer/rendezvous/recent_collectives.h"

namespace tycho {

/// A thread of its own: the main thread may hang, and the monitor must not wait for a file system.
class AnsweredRequests {
 public:
  using PassOn = std::function<void(const std::string& request)>;

  /// `pass_on`: of rank 0, which looks for requests in the folder and tells the other ranks; on that thread.
  AnsweredRequests(std::shared_ptr<RecentCollectives> recent, PassOn pass_on);
  ~AnsweredRequests() { end(); }
  AnsweredRequests(const AnsweredRequests&) = delete;
  AnsweredRequests& operator=(const AnsweredRequests&) = delete;

  /// From any thread; does not wait for the file.
  void answer(const std::string& request);
  /// Nothing is passed on from now on, and nothing is written, unless a file system holds the thread.
  void end();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace tycho
