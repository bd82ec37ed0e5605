// Where the thread that commits a checkpoint waits for the shards of other ranks. Torch-free.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {

/// For one save, on the rank that commits. The thread that writes calls the first group of functions, the
/// trainer's thread, which alone talks to other ranks, the second.
class ShardExchange {
 public:
  /// The folder is there; other ranks may write.
  void open(const std::string& folder);
  /// This rank's shard is written. Waits for those of the others; throws what ended the exchange.
  std::vector<WrittenShard> wait_for_others();
  /// There will be no folder and no more waiting: the save has ended.
  void close();

  /// Waits for the folder; "" when the save ended without one.
  std::string wait_for_folder();
  /// Whether this rank's shard is written, or the save has ended.
  bool is_waiting() const;
  void wait_until_waiting() const;
  void give(std::vector<WrittenShard> others);
  /// The others' shards will not come.
  void give_up(const Error& why);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string folder_;
  bool is_waiting_ = false, is_closed_ = false;
  std::optional<std::vector<WrittenShard>> others_;
  std::optional<Error> failure_;
};

}  // namespace tycho
