// Reports a run to Weights & Biases while it runs, from a thread of its own that the run never waits for.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/loggers/wandb_server.h"
#include "trainer/loggers/wandb_settings.h"
#include "trainer/loggers/wandb_upload.h"

namespace tycho {

struct WandbPatience {
  double every_s = 15;                            // between requests; the official client's own interval
  double beat_s = 25;                             // between signs of life
  double first_wait_s = 1, longest_wait_s = 120;  // after a failure, doubling
  double refused_wait_s = 600;                    // after a refusal, such as of the key
  double timeout_s = 20;                          // of a request
  double end_s = 8;                               // for the rest at the end of a run
};

/// Sends what the files of a run have and the server lacks, again and again, until end().
class WandbOnline {
 public:
  WandbOnline(const WandbSettings& settings, const std::string& run_dir, std::vector<std::string> files,
              const WandbPatience& patience = {});
  ~WandbOnline();
  WandbOnline(const WandbOnline&) = delete;

  /// Sends the rest, a last line of the console and the exit code. Returns why that did not succeed in time;
  /// "" when it did.
  std::string end(const std::string& last_line);
  /// Returns what users are to be told now, once; "" for nothing. Callable from any thread.
  std::string news();
  /// Ends the running request soon, and sends no more. Callable from any thread.
  void cancel();

 private:
  void work();
  void send(bool is_last);
  double wait_after(const Error& error);

  const WandbPatience patience_;
  WandbServer server_;
  WandbUpload upload_;    // used by thread_
  double beat_at_s_ = 0;  // of the steady clock

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false, quits_ = false, done_ = false, told_ = false;
  std::string failure_, news_, last_line_;
  int num_failures_ = 0;
  std::thread thread_;
};

}  // namespace tycho
