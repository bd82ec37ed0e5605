// How ranks meet, and how long they wait for each other. Torch-free.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trainer/base/error.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

struct MeetOptions {
  /// A signal's number when this process is to stop: the wait for the others listens to it.
  const std::atomic<int>* stop = nullptr;
  /// A folder that all ranks see, for the token of ranks that were given none; "" when there is none.
  std::string shared_dir;
  /// For all ranks to come; nothing: a minute for those that one `tycho launch` starts together, ten for
  /// others.
  std::optional<double> join_s;
  double connect_s = 1800;  // for the slowest rank to come to Peers::connect
  double no_route_s = 20;   // for a route to a rank that has met the others: it is there by then, or never
  double silence_s = 30;    // without a sign of life: a rank is hung, or its machine gone
  double end_s = 30;  // for the main thread to leave a broken world before its process is ended; 0: no limit
  double save_s = std::chrono::duration<double>(kTimeToSave).count();  // more, for one that saves meanwhile
  double goodbye_s = 5;  // a rank that ended well is missed after this time
  double beat_s = 1;     // between two signs of life
  double hang_s = 60;    // in one collective: ranks leave their last collectives, in case the run is killed
  Environment variable = process_environment();
  Progress* progress = &process_progress();
  /// Someone, or rank 0, asks for the last collectives of every rank. Called on the monitor's thread: must
  /// not wait.
  std::function<void(const std::string& request)> on_request;
  /// Lines for people; nothing: standard error.
  std::function<void(const std::string& line)> say;
  /// Called before the process is ended because its main thread does not leave a broken world.
  std::function<void(const Error& cause)> before_end;
  /// Nothing: _exit.
  std::function<void(int code)> end_process;
};

}  // namespace tycho
