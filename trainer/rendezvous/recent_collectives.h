// The last collectives of a rank, kept for reports about failures and hangs. Torch-free.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {

/// Subfolder of the run folder, with one file for each rank.
inline constexpr const char* kCollectivesFolder = "collectives";
/// File in that folder with which a user asks the ranks of a live run for their collectives. Its text names
/// the request.
inline constexpr const char* kCollectivesRequest = "request";

/// A collective or a message, as its rank calls it. The texts are constants of the program.
struct CollectiveCall {
  const char* op = "";     // "all_reduce"
  const char* dtype = "";  // "fp32"; "" for a barrier
  int64_t num_bytes = 0;   // size of this rank's input, or of a message
  int peer = -1;           // in its group: the root of a broadcast, or the other end of a message
};

/// Identity of the rank that wrote a file.
struct CollectivesOrigin {
  int rank = 0, num_ranks = 1, pid = 0;
  std::string host;
  std::string world;  // equal on all ranks of one start, different for the next start
};

/// Last collectives of one rank. All functions from any thread. Only write() and answer() wait for more than
/// a lock.
class RecentCollectives {
 public:
  static constexpr size_t kKept = 64;
  enum class State : uint8_t {
    kQueued,    // waits for the thread that runs calls in the background
    kOnDevice,  // enqueued on a GPU; known to be done when the GPU has been waited for
    kStarted,
    kDone,
    kFailed
  };

  /// `progress`, from which a call's step and phase are taken, must outlive this object.
  explicit RecentCollectives(const Progress& progress) : progress_(progress) {}

  /// Adds a group of ranks of the world. Returns its number. All ranks of the group give it the same name.
  int add_group(std::string name, std::vector<int> ranks);
  void name_group(int group, std::string name);
  /// Sets the position of this rank on the axes of the mesh: {"pp", 1}.
  void set_coordinates(std::vector<std::pair<std::string, int>> coordinates);

  /// Adds a call. Returns its ticket.
  uint64_t add(int group, const CollectiveCall& call, State state);
  /// Sets the state of a call. Does nothing for a call that is no longer kept.
  void set_state(uint64_t ticket, State state);
  /// Marks all calls enqueued on the GPU so far as done.
  void device_is_done();

  /// Sets the part of the model that the calls of this thread are for. Returns the previous one. At most
  /// kUnitChars are kept.
  static std::string_view set_unit(std::string_view unit);

  /// Makes write() and answer() write to <folder>/rank-00000.json from now on.
  void keep_in(std::string folder, CollectivesOrigin origin);
  /// Folder of the files; "" before keep_in.
  std::string folder() const;
  /// Writes the file. `cause`: why the ranks end. Does nothing before keep_in. Throws Error (kStorage) when
  /// it cannot be written.
  void write(const std::string& cause);
  /// Writes the file for a user who asks while the ranks run. Does nothing after write(). Throws as write()
  /// does.
  void answer(const std::string& request);
  Json json() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kUnitChars = 23;
  struct Entry {
    uint64_t ticket = 0;
    int64_t number = 0, step = -1;  // number: of earlier calls in its group, or of earlier messages between
                                    // the two ranks
    CollectiveCall call;
    int group = 0;
    State state = State::kQueued;
    std::array<char, kUnitChars + 1> unit = {};
    std::array<char, Progress::kPhaseChars + 1> phase = {};
    Clock::time_point added, started, ended;
  };
  struct Messages {  // messages with one rank of the group, in one direction
    const char* op;
    int peer;
    int64_t count = 0;
  };
  struct Group {
    std::string name;
    std::vector<int> ranks;
    int64_t num_calls = 0;
    std::vector<Messages> messages;
  };

  int64_t& count_of(Group& group, const CollectiveCall& call);
  void write_file(const std::string& folder, const std::string& cause, const std::string& request) const;
  Json entry_json(const Entry& entry, Clock::time_point now) const;

  const Progress& progress_;
  mutable std::mutex mutex_;
  std::array<Entry, kKept> entries_;
  uint64_t num_calls_ = 0;
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, int>> coordinates_;
  std::string folder_;
  CollectivesOrigin origin_;
  std::mutex file_mutex_;  // one thread writes at a time
  bool has_ended_ = false;
};

/// Records the calls of one group; does nothing for a group of one.
struct NotedGroup {
  RecentCollectives* calls = nullptr;
  int group = 0;
  void add(const CollectiveCall& call, RecentCollectives::State state) const {
    if (calls != nullptr) calls->add(group, call, state);
  }
};

/// Sets the part of the model that the calls of this thread are for, while it lives. `unit` must outlive it.
class ForUnit {
 public:
  explicit ForUnit(std::string_view unit) : before_(RecentCollectives::set_unit(unit)) {}
  ~ForUnit() { RecentCollectives::set_unit(before_); }
  ForUnit(const ForUnit&) = delete;
  ForUnit& operator=(const ForUnit&) = delete;

 private:
  std::string_view before_;
};

}  // namespace tycho
