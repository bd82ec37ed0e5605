// Takes the next number, renews its object, and notices when a higher number is there.
#include "trainer/checkpoint/place_lease.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
constexpr char kFolder[] = "lease/";
constexpr char kReleased[] = "released\n";
constexpr int64_t kMostBytes = 65536;
constexpr int kMaxRounds = 100;
constexpr double kRelease_s = 5;

struct Lease {
  std::string name, text;
  int64_t number = 0;
  std::optional<Owner> owner;
  std::string folder_owner;  // uuid in the LOCK of the owner's run folder
};

int64_t number_of(const std::string& name) {
  const std::string digits = name.substr(std::string_view(kFolder).size());
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    return 0;
  return std::stoll(digits);
}

std::string name_of(int64_t number) { return fmt::format("{}{:09}", kFolder, number); }

/// Returns the numbers of all leases, ascending.
std::vector<int64_t> numbers_in(Bucket& bucket, const std::stop_token& stop) {
  std::vector<int64_t> numbers;
  for (const StoredObject& object : bucket.list(kFolder, stop))
    if (const int64_t number = number_of(object.name); number > 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Lease lease_of(std::string name, std::string text) {
  Lease lease{.name = std::move(name), .text = std::move(text)};
  lease.number = number_of(lease.name);
  try {
    lease.owner = parse_owner(lease.text, lease.name);
    const size_t second = lease.text.find('\n') + 1;
    constexpr std::string_view kOf = "run folder of ";
    if (lease.text.compare(second, kOf.size(), kOf) == 0) {
      const size_t begin = second + kOf.size();
      lease.folder_owner = lease.text.substr(begin, lease.text.find('\n', begin) - begin);
    }
  } catch (const Error&) {
    lease.owner.reset();  // damaged: only time tells
  }
  return lease;
}

/// Returns the lease that counts; nullopt when there is none.
std::optional<Lease> newest_lease(Bucket& bucket, const std::stop_token& stop) {
  while (true) {
    const std::vector<int64_t> numbers = numbers_in(bucket, stop);
    if (numbers.empty()) return {};
    // A successor may have removed it meanwhile.
    if (auto text = bucket.get(name_of(numbers.back()), kMostBytes, stop))
      return lease_of(name_of(numbers.back()), *std::move(text));
  }
}

enum class Verdict { kFree, kAlive, kUnknown };

Verdict judge(const Lease& lease, const Owner& ours, const std::string& predecessor) {
  if (lease.text.ends_with(kReleased)) return Verdict::kFree;
  if (!lease.owner) return Verdict::kUnknown;
  if (is_later_start(ours, *lease.owner)) return Verdict::kFree;
  if (!predecessor.empty() && lease.folder_owner == predecessor) return Verdict::kFree;
  if (!same_machine(*lease.owner)) return Verdict::kUnknown;
  switch (process_state(*lease.owner)) {
    case ProcessState::kGone: return Verdict::kFree;
    case ProcessState::kRuns: return Verdict::kAlive;
    case ProcessState::kStopped: break;
  }
  return Verdict::kUnknown;
}

[[noreturn]] void fail_owned(const std::string& place, const Lease& lease) {
  const std::string who = lease.owner ? describe(*lease.owner) : "a run that renews it";
  fail(ExitCode::kFolderOwned,
       "[ckpt.remote] {} belongs to a run that is alive: {}. Wait until it ends, stop it, or use another "
       "place "
       "for this run (ckpt.remote, run_name)",
       place, who);
}

}  // namespace

PlaceLease::PlaceLease(std::shared_ptr<Bucket> bucket, std::shared_ptr<Bucket> beats, Settings settings)
    : bucket_(std::move(bucket)),
      beats_(std::move(beats)),
      settings_(std::move(settings)),
      owner_(this_process(0)) {
  int round = 0;
  while (!take()) {
    if (++round == kMaxRounds)
      fail(ExitCode::kFolderOwned, "[ckpt.remote] {} is being taken by other runs: use another place",
           bucket_->place_of(kFolder));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
}

PlaceLease::~PlaceLease() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  std::stop_source out_of_time;
  std::mutex mutex;
  std::condition_variable_any over;
  const std::jthread timer([&](const std::stop_token& done) {
    std::unique_lock lock(mutex);
    over.wait_for(lock, done, Seconds(kRelease_s), [] { return false; });
    if (!done.stop_requested()) out_of_time.request_stop();
  });
  try {
    beats_->put(name_, text(kReleased), PutWhen::kAlways, out_of_time.get_token());
  } catch (...) {
    // Without the mark the next owner finds out by itself.
  }
}

// Tries once. Returns false when another run was faster, and all must be read again.
bool PlaceLease::take() {
  std::optional<Lease> seen = newest_lease(*bucket_, settings_.stop);
  Clock::time_point unchanged_since = Clock::now();
  while (seen) {
    const Verdict verdict = judge(*seen, owner_, settings_.predecessor);
    const std::string place = bucket_->place_of(seen->name);
    if (verdict == Verdict::kAlive) fail_owned(place, *seen);
    if (verdict == Verdict::kFree || Seconds(Clock::now() - unchanged_since).count() >= settings_.stale_s)
      break;
    if (settings_.waiting)
      settings_.waiting(fmt::format(
          "[ckpt.remote] {} {}: taking the place if the object does not change for {:.0f} s", place,
          seen->owner ? fmt::format("names {}, which cannot be checked from here", describe(*seen->owner))
                      : std::string("is damaged"),
          settings_.stale_s));
    std::this_thread::sleep_for(Seconds(std::min(1.0, settings_.stale_s / 20)));
    std::optional<Lease> now = newest_lease(*bucket_, settings_.stop);
    if (now && now->text == seen->text && now->name == seen->name) continue;
    if (now && now->name == seen->name && !now->text.ends_with(kReleased)) fail_owned(place, *now);
    seen = std::move(now);
    unchanged_since = Clock::now();
  }
  const int64_t number = (seen ? seen->number : 0) + 1;
  owner_.epoch = number;
  name_ = name_of(number);
  if (!bucket_->put(name_, text("beat 0\n"), PutWhen::kAbsent, settings_.stop)) return false;
  // A slow run may have judged a lease whose successor is there by now.
  std::vector<std::string> older;
  for (const int64_t other : numbers_in(*bucket_, settings_.stop)) {
    if (other > number) {
      bucket_->remove({name_}, settings_.stop);
      return false;
    }
    if (other < number) older.push_back(name_of(other));
  }
  if (!older.empty()) bucket_->remove(older, settings_.stop);
  return true;
}

std::string PlaceLease::text(const std::string& state) const {
  const std::lock_guard lock(mutex_);
  std::string lines = owner_line(owner_);
  if (!folder_owner_.empty()) lines += "run folder of " + folder_owner_ + "\n";
  return lines + state;
}

void PlaceLease::set_folder_owner(const std::string& uuid) {
  {
    const std::lock_guard lock(mutex_);
    folder_owner_ = uuid;
  }
  bucket_->put(name_, text(fmt::format("beat {}\n", ++num_beats_)), PutWhen::kAlways, settings_.stop);
}

void PlaceLease::check(const std::stop_token& stop) const {
  const std::optional<Lease> newest = newest_lease(*bucket_, stop);
  if (newest && newest->owner && newest->owner->uuid == owner_.uuid) return;
  fail(ExitCode::kFolderOwned,
       "[ckpt.remote] {} no longer belongs to this run: {}. This run stops and writes nothing more; resume "
       "from the checkpoints of the run that took over",
       bucket_->place_of(kFolder),
       !newest         ? "its lease was removed"
       : newest->owner ? "taken over by " + describe(*newest->owner)
                       : newest->name + " is damaged");
}

void PlaceLease::beat(const std::stop_token& stop) {
  std::mutex mutex;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex);
      changed_.wait_for(lock, stop, Seconds(settings_.stale_s / 8), [] { return false; });
    }
    if (stop.stop_requested()) return;
    try {
      beats_->put(name_, text(fmt::format("beat {}\n", ++num_beats_)), PutWhen::kAlways, stop);
    } catch (const Error&) {
      // The store may answer again before we count as gone; check() says whether somebody took over.
    }
  }
}

}  // namespace tycho
