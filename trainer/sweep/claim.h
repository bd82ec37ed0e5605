// Claims on trials: one file for each time that a trial is taken, never reused. Torch-free.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Returns <sweep_dir>/claims/<trial>.<number>. The file has a line that names the owner
/// (lock/owner.h), a dot for every heartbeat, and "released" when the owner left.
std::string claim_path(const std::string& sweep_dir, const std::string& trial, int64_t number);

/// Held while a trial is worked on. Owned by one thread.
class Claim {
 public:
  /// Takes number `number` of a trial; nullptr when a process has it, or had it. Of any number of processes
  /// on any machines exactly one gets it. Throws Error (kStorage).
  static std::unique_ptr<Claim> take(FileOps& files, const std::string& sweep_dir, const std::string& trial,
                                     int64_t number);
  ~Claim();
  /// Writes a heartbeat. A full disk is not an error, because there may be space again before three
  /// heartbeats are missed.
  void beat();

 private:
  Claim() = default;
  std::unique_ptr<OutputFile> file_;
};

/// Returns true when a single look shows that the owner of a claim is gone: it left, it died on this machine,
/// or its file did not grow for longer (ten minutes, or thirty intervals if that is more) than differing
/// clocks of nodes explain.
bool is_gone(const std::string& sweep_dir, const std::string& trial, int64_t number, double interval_s);

/// Detects dead owners by their heartbeats, using the observer's own clock, since clocks of nodes may differ.
class ClaimWatch {
 public:
  explicit ClaimWatch(std::string sweep_dir) : sweep_dir_(std::move(sweep_dir)) {}
  /// Returns true when the owner of a claim is gone: it left, it died on this machine, or its file did not
  /// grow for more than three intervals while we watched. Call it about once per interval and claim, or more
  /// often.
  bool is_lost(const std::string& trial, int64_t number, double interval_s);

 private:
  struct LastGrowth {
    int64_t num_bytes = -1;
    std::chrono::steady_clock::time_point since;
  };
  std::string sweep_dir_;
  std::map<std::string, LastGrowth> last_growths_;
};

}  // namespace tycho
