// Options for the rendezvous of ranks, and time limits of waits between them. Torch-free.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trainer/base/error.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

struct MeetOptions {
  /// Number of a signal when this process must stop; ends the wait for the others. May be null.
  const std::atomic<int>* stop = nullptr;
  /// Folder that all ranks see, for the token of ranks that were given none; "" when there is none.
  std::string shared_dir;
  /// Seconds for all ranks to come. Default: a minute for ranks that one `tycho launch` starts together, ten
  /// for others.
  std::optional<double> join_s;
  double connect_s = 1800;  // for the slowest rank to call Peers::connect
  double no_route_s = 20;   // for a route to a rank that has met the others: it exists by then, or never
  double silence_s = 30;    // without a sign of life: then a rank is hung, or its machine gone
  double end_s = 30;  // for the main thread to leave a broken world before its process is ended; 0: no limit
  double save_s = std::chrono::duration<double>(kTimeToSave).count();  // instead of end_s, while the main
                                                                       // thread saves
  double goodbye_s = 5;  // after this time, others notice the absence of a rank that ended well
  double beat_s = 1;     // between two signs of life
  double hang_s = 60;    // in one collective; then ranks write their last collectives, in case the run is
                         // killed
  Environment variable = process_environment();
  Progress* progress = &process_progress();
  /// Called when a user, or rank 0, asks for the last collectives of every rank. Runs on the monitor's thread
  /// and must not wait.
  std::function<void(const std::string& request)> on_request;
  /// Receives lines for users. Default: standard error.
  std::function<void(const std::string& line)> say;
  /// Called before the process is ended because its main thread does not leave a broken world.
  std::function<void(const Error& cause)> before_end;
  /// Ends the process. Default: _exit.
  std::function<void(int code)> end_process;
};

}  // namespace tycho
