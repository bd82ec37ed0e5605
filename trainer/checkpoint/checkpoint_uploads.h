// Uploads of saved checkpoints, in the background: each rank its files, COMMIT last. Torch-free.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/remote_checkpoints.h"

namespace tycho {

/// Settings of one rank's uploads; rank 0 also commits and removes.
struct UploadSettings {
  std::shared_ptr<RemoteCheckpoints> remote;
  int rank = 0, num_ranks = 1;
  int64_t keep = 0;      // newest checkpoints to keep in the store; 0 keeps all
  int64_t epoch = 0;     // of this run
  int64_t max_lost = 0;  // most checkpoints in a row that may wait; 0 for any number
  /// Throws Error (kFolderOwned) when another run owns the place now; null when nobody can.
  std::function<void(const std::stop_token& stop)> check_owner = {};
  double first_wait_s = 2, longest_wait_s = 60;  // between two tries while the store fails
};

/// One event for the run's record.
struct UploadEvent {
  std::string kind, text;  // see Reporter::event
  Json facts;
};

/// Uploads committed checkpoints in their order, on a thread of its own, and tries again for as long as it
/// exists. Rank 0 commits a checkpoint once all objects of its files are there, whichever rank put them.
/// Nothing but a lost place ends the uploads. Functions may be called from any thread.
class CheckpointUploads {
 public:
  explicit CheckpointUploads(UploadSettings settings);
  /// Stops a request under way. The next start continues.
  ~CheckpointUploads();

  /// Adds a committed checkpoint in a folder of this machine.
  void add(const std::string& folder);
  /// Sets what earlier starts left: `waiting` folders of this machine to upload, and `leftovers` in the store
  /// that nobody will finish, which rank 0 removes. Called once, before add().
  void begin(const std::vector<std::string>& waiting, std::vector<std::string> leftovers);
  /// Sets the uuid of the checkpoint that training resumed from, which remote retention spares at first.
  void set_resumed_from(const std::string& uuid);

  /// Returns true while the checkpoint of this uuid is not in the store and will be.
  bool needs(const std::string& uuid) const;
  /// Returns the number of checkpoints that wait, the one under way included.
  int64_t num_behind() const;
  /// Returns a number that grows with every byte and every checkpoint that is stored.
  int64_t progress() const;
  /// Returns what is left to do, for display: "2 checkpoints, 1.5 GB of step 300 uploaded"; "" for nothing.
  std::string behind_text() const;
  /// Returns the events since the last call. Throws Error: kFolderOwned when another run took the place,
  /// kStorage when more than max_lost checkpoints wait.
  std::vector<UploadEvent> take_events();

 private:
  struct Waiting {
    std::string folder;  // path
    std::string name;    // its last part
    std::string uuid;
    int64_t step = 0;
    bool is_of_earlier_start = false;
  };

  void run(const std::stop_token& stop);
  void clear_leftovers(const std::stop_token& stop);
  /// Uploads one checkpoint. Returns its bytes.
  int64_t upload(const Waiting& one, const std::stop_token& stop);
  void wait_for_parts(const Waiting& one, const CheckpointInfo& info, const std::stop_token& stop);
  void retain(const CheckpointInfo& newest, const std::stop_token& stop);
  void note_done(const Waiting& one, int64_t num_bytes, double seconds);
  void note_failure(const Waiting& one, const std::string& why);
  void drop(const Waiting& one, const std::string& why);
  /// Waits so many seconds, or until the stop.
  void pause(double seconds, const std::stop_token& stop);
  void check_owner(const std::stop_token& stop) const;
  bool is_mine(const std::string& file) const;

  const UploadSettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Waiting> queue_;
  std::vector<std::string> leftovers_;
  bool has_begun_ = false, aborts_old_parts_ = false;
  std::string resumed_from_, failure_, activity_;
  int64_t failed_step_ = -1;  // step whose failure was reported last
  int64_t progress_ = 0, bytes_of_current_ = 0;
  std::vector<UploadEvent> events_;
  std::exception_ptr lost_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::jthread thread_;  // declared last, so that it stops before the members that it uses are destroyed
};

}  // namespace tycho
