// Compares the contents of a LOCK from one look to the next.
#include "trainer/lock/owner_watch.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/lock/owner.h"

namespace tycho {

OwnerWatch::OwnerWatch(const std::string& run_dir, double silence_s)
    : path_(run_dir + "/LOCK"), silence_s_(silence_s), unchanged_since_(std::chrono::steady_clock::now()) {}

std::optional<OwnerWatch::Absence> OwnerWatch::look() {
  std::string text;
  std::optional<Owner> owner;
  is_alive_ = false;
  try {
    if (!std::filesystem::is_regular_file(path_)) return {};
    text = read_file(path_);
    owner = parse_owner(text, path_);
  } catch (const Error&) {
    return {};  // being written, or of somebody else
  }
  const auto now = std::chrono::steady_clock::now();
  const bool has_left = text.ends_with(RunLock::kReleased);
  if (text != text_) {
    is_alive_ = !has_left && !text_.empty() && text.starts_with(text_);
    unchanged_since_ = now;
  }
  text_ = text;
  const bool silent = std::chrono::duration<double>(now - unchanged_since_).count() >= silence_s_;
  if (!has_left && same_machine(*owner)) {
    is_alive_ = process_state(*owner) != ProcessState::kGone;
    if (is_alive_) return {};
  } else if (!has_left && !silent) {
    return {};
  }
  return Absence{describe(*owner), silent};
}

void wait_until_unowned(const std::string& run_dir, const std::function<void(const std::string&)>& waiting,
                        double silence_s) {
  OwnerWatch watch(run_dir, silence_s);
  for (bool told = false; names_owner(run_dir) && !watch.look(); told = true) {
    const std::string path = run_dir + "/LOCK";
    if (watch.is_alive())
      fail(ExitCode::kFolderOwned,
           "[lock] expected a run that has ended, got {}, whose owner is alive: {}; wait until it ends, or "
           "stop it",
           run_dir, describe(parse_owner(read_file(path), path)));
    if (!told)
      waiting(
          fmt::format("[lock] {} names a run on another machine: going on if the file does not change for "
                      "{:.0f} s",
                      path, silence_s));
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(1.0, silence_s / 20)));
  }
}

}  // namespace tycho
