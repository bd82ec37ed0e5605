// The last collectives of a rank, kept for the moment in which something goes wrong. Torch-free.
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

/// Below the run folder: one file for each rank.
inline constexpr const char* kCollectivesFolder = "collectives";
/// A file in that folder: someone asks the ranks of a live run for theirs. Its text names the request.
inline constexpr const char* kCollectivesRequest = "request";

/// A collective or a message, as its rank calls it. The texts are constants of the program.
struct CollectiveCall {
  const char* verb = "";   // "all_reduce"
  const char* dtype = "";  // "fp32"; "" for a barrier
  int64_t num_bytes = 0;   // of what this rank gives, or of a message
  int peer = -1;           // in its group: the root of a broadcast, or the other end of a message
};

/// What a file says of the rank that wrote it.
struct CollectivesOrigin {
  int rank = 0, num_ranks = 1, pid = 0;
  std::string host;
  std::string world;  // the same for all ranks of one start, and another for the next one
};

/// Of one rank. All functions from any thread. None but write() and answer() waits for more than a lock.
class RecentCollectives {
 public:
  static constexpr size_t kKept = 64;
  enum class State : uint8_t {
    kQueued,    // for the thread that runs calls in the background
    kOnDevice,  // handed to a GPU; known to be done when the GPU has been waited for
    kStarted,
    kDone,
    kFailed
  };

  /// `progress` outlives it: what a call is noted with.
  explicit RecentCollectives(const Progress& progress) : progress_(progress) {}

  /// The number of a new group of ranks of the world. Ranks of one group give it one name.
  int add_group(std::string name, std::vector<int> ranks);
  void name_group(int group, std::string name);
  /// Where this rank stands on the axes of the mesh: {"pp", 1}.
  void set_coordinates(std::vector<std::pair<std::string, int>> coordinates);

  /// Returns the call's ticket.
  uint64_t add(int group, const CollectiveCall& call, State state);
  /// Nothing for a call that is no longer kept.
  void set_state(uint64_t ticket, State state);
  /// Everything that was handed to the GPU so far is done.
  void device_is_done();

  /// The calls of this thread are for this part of the model; the text before. At most kUnitChars are kept.
  static std::string_view set_unit(std::string_view unit);

  /// From now on write() and answer() write, to <folder>/rank-00000.json.
  void keep_in(std::string folder, CollectivesOrigin origin);
  /// The folder; "" before keep_in.
  std::string folder() const;
  /// `cause`: why the ranks end. Nothing before keep_in. Throws Error (kStorage) when it cannot be written.
  void write(const std::string& cause);
  /// The same for someone who asks while the ranks run; nothing after write().
  void answer(const std::string& request);
  Json json() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kUnitChars = 23;
  struct Entry {
    uint64_t ticket = 0;
    int64_t number = 0, step = -1;  // number: of calls before it in its group, or of messages on its way
    CollectiveCall call;
    int group = 0;
    State state = State::kQueued;
    std::array<char, kUnitChars + 1> unit = {};
    std::array<char, Progress::kPhaseChars + 1> phase = {};
    Clock::time_point added, started, ended;
  };
  struct Messages {  // with one rank of the group, one way
    const char* verb;
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

/// Where the calls of one group are noted; nowhere for a group of one.
struct NotedGroup {
  RecentCollectives* calls = nullptr;
  int group = 0;
  void add(const CollectiveCall& call, RecentCollectives::State state) const {
    if (calls != nullptr) calls->add(group, call, state);
  }
};

/// The calls of this thread are for a part of the model while it lives. `unit` outlives it.
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
