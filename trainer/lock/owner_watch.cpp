// Compares the contents of a LOCK from one look to the next.
#include "trainer/lock/owner_watch.h"

#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/lock/owner.h"

namespace tycho {

OwnerWatch::OwnerWatch(const std::string& run_dir, double silence_s)
    : path_(run_dir + "/LOCK"), silence_s_(silence_s), unchanged_since_(std::chrono::steady_clock::now()) {}

std::optional<OwnerWatch::Absence> OwnerWatch::look() {
  std::string text;
  std::optional<Owner> owner;
  try {
    if (!std::filesystem::is_regular_file(path_)) return {};
    text = read_file(path_);
    owner = parse_owner(text, path_);
  } catch (const Error&) {
    return {};  // being written, or of somebody else
  }
  const auto now = std::chrono::steady_clock::now();
  if (text != text_) unchanged_since_ = now;
  text_ = text;
  const bool silent = std::chrono::duration<double>(now - unchanged_since_).count() >= silence_s_;
  const bool has_left = text.ends_with(RunLock::kReleased);
  if (!has_left && same_machine(*owner)) {
    if (process_state(*owner) != ProcessState::kGone) return {};
  } else if (!has_left && !silent) {
    return {};
  }
  return Absence{describe(*owner), silent};
}

}  // namespace tycho
