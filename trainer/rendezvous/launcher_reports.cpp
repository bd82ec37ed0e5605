// Writes reports into the launcher's pipe.
#include "trainer/rendezvous/launcher_reports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <string>
#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/json.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);

/// Returns the descriptor of the launcher's pipe; -1 without a launcher, or when the variable does not name
/// its pipe.
int report_file() {
  const std::string text = environment_variable(kReportVariable);
  int file = -1;
  if (std::from_chars(text.data(), text.data() + text.size(), file).ec != std::errc()) return -1;
  // Programs that this process starts must not keep the pipe open, and a full pipe must not block this
  // process.
  if (file <= STDERR_FILENO || fcntl(file, F_SETFD, FD_CLOEXEC) != 0) return -1;
  fcntl(file, F_SETFL, O_NONBLOCK);
  return file;
}

}  // namespace

LauncherReports::LauncherReports() {
  if (const int file = report_file(); file >= 0) thread_ = std::thread([this, file] { run(file); });
}

LauncherReports::~LauncherReports() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LauncherReports::run(int file) {
  std::unique_lock lock(mutex_);
  do {
    const ProgressReport report = process_progress().report();
    const std::string line = fmt::format("{} {}\n", report.step, report.phase);
    if (write(file, line.data(), line.size()) < 0 && errno == EPIPE) return;  // the launcher is gone
  } while (!changed_.wait_for(lock, kInterval, [this] { return is_over_; }));
}

bool leave_to_launcher(const std::string& error) {
  const int file = report_file();
  if (file < 0) return false;
  const std::string line =
      fmt::format("{}{}\n", kErrorMark, Json(error).dump(-1, ' ', false, Json::error_handler_t::replace));
  const ssize_t written = write(file, line.data(), line.size());
  return std::cmp_equal(written, line.size()) && environment_variable("TYCHO_RANK") != "0";
}

}  // namespace tycho
