// Takes claims with link(), which exactly one of several processes wins on every file system that supports
// it.
#include "trainer/sweep/claim.h"

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/lock/owner.h"

namespace tycho {
namespace {

constexpr std::string_view kReleased = "\nreleased\n";
constexpr double kMissedBeats = 3;
constexpr double kSurelyMissedBeats = 30, kSurelyGone_s = 600;

/// Returns true when the owner was a process of this machine that no longer exists.
bool is_dead_here(const std::string& text, const std::string& path) {
  try {
    const Owner owner = parse_owner(text, path);
    return same_machine(owner) && process_state(owner) == ProcessState::kGone;
  } catch (const Error&) {
    return false;  // half written: only time tells
  }
}

/// Returns the text of a claim; "" for a file that is not visible yet, or was removed by hand. A later look
/// tells which.
std::string claim_text(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return "";
  }
}

bool has_left(const std::string& text, const std::string& path) {
  return text.ends_with(kReleased) || is_dead_here(text, path);
}

}  // namespace

std::string claim_path(const std::string& sweep_dir, const std::string& trial, int64_t number) {
  return fmt::format("{}/claims/{}.{}", sweep_dir, trial, number);
}

std::unique_ptr<Claim> Claim::take(FileOps& files, const std::string& sweep_dir, const std::string& trial,
                                   int64_t number) {
  const std::string path = claim_path(sweep_dir, trial, number);
  if (std::filesystem::exists(path)) return nullptr;
  make_dirs(files, sweep_dir + "/claims");
  const Owner owner = this_process(number);
  const std::string draft = fmt::format("{}.{}", path, owner.uuid), line = owner_line(owner);
  std::unique_ptr<Claim> claim(new Claim);
  claim->file_ = files.create(draft);
  bool won = false;
  try {
    // Not made durable: after a power cut nobody holds a claim, and an empty one is judged by its heartbeats.
    claim->file_->write(line.data(), line.size());
    won = files.link(draft, path);
  } catch (const Error&) {
    files.remove_file(draft);
    throw;
  }
  files.remove_file(draft);
  if (won) return claim;
  claim->file_.reset();
  return nullptr;
}

void Claim::beat() {
  try {
    file_->write(".", 1);
    file_->sync();
  } catch (const Error&) {
    return;
  }
}

Claim::~Claim() {
  if (!file_) return;
  try {
    file_->write(kReleased.data(), kReleased.size());
    file_->close();
  } catch (const Error&) {
    // Without the mark others find out by themselves.
  }
}

bool is_gone(const std::string& sweep_dir, const std::string& trial, int64_t number, double interval_s) {
  const std::string path = claim_path(sweep_dir, trial, number);
  if (has_left(claim_text(path), path)) return true;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return false;
  const double age_s =
      std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
  return age_s > std::max(kSurelyGone_s, kSurelyMissedBeats * interval_s);
}

bool ClaimWatch::is_lost(const std::string& trial, int64_t number, double interval_s) {
  const std::string path = claim_path(sweep_dir_, trial, number);
  const std::string text = claim_text(path);
  if (has_left(text, path)) return true;
  LastGrowth& last = last_growths_[path];
  const auto now = std::chrono::steady_clock::now();
  if (last.num_bytes != static_cast<int64_t>(text.size())) {
    last = {static_cast<int64_t>(text.size()), now};
    return false;
  }
  return std::chrono::duration<double>(now - last.since).count() > kMissedBeats * interval_s + interval_s / 2;
}

}  // namespace tycho
