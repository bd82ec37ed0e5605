// Writes a rank's last collectives on request, while the run trains or hangs. Torch-free.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "trainer/rendezvous/recent_collectives.h"

namespace tycho {

/// Answers requests on its own thread: the main thread may hang, and the monitor must not wait for a file
/// system.
class AnsweredRequests {
 public:
  using PassOn = std::function<void(const std::string& request)>;

  /// `pass_on` is set on rank 0, which looks for requests in the folder and tells the other ranks; called on
  /// that thread.
  AnsweredRequests(std::shared_ptr<RecentCollectives> recent, PassOn pass_on);
  ~AnsweredRequests() { end(); }
  AnsweredRequests(const AnsweredRequests&) = delete;
  AnsweredRequests& operator=(const AnsweredRequests&) = delete;

  /// Starts to answer a request, without waiting for the file. From any thread.
  void answer(const std::string& request);
  /// Stops. Afterwards nothing is passed on, and nothing is written, unless a file system holds the thread.
  void end();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace tycho
