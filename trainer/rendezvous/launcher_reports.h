// A rank's reports to `tycho launch`: a line each second with its step and phase, and its last error.
// Torch-free.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tycho {

/// Name of the variable with the descriptor of the pipe that the launcher left open for a rank.
inline constexpr const char* kReportVariable = "TYCHO_REPORT_FD";

/// First byte of the line with a rank's last error, as JSON text.
inline constexpr char kErrorMark = '!';

/// Reports process_progress() from a thread while this object lives, also while the main thread waits or
/// computes. Does nothing without a launcher. Create at most one in a process.
class LauncherReports {
 public:
  LauncherReports();
  ~LauncherReports();
  LauncherReports(const LauncherReports&) = delete;
  LauncherReports& operator=(const LauncherReports&) = delete;

 private:
  void run(int file);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// Sends the error with which this process ends to its launcher, which prints an error of several ranks once.
/// Returns true if the launcher prints it; rank 0, which is at the terminal, prints its own.
bool leave_to_launcher(const std::string& error);

}  // namespace tycho
