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

/// Exchanges the shards of one save on the rank that commits. The writing thread calls the first group of
/// functions; the trainer's thread, which alone communicates with other ranks, calls the second.
class ShardExchange {
 public:
  /// Announces that the folder exists, so that other ranks may write.
  void open(const std::string& folder);
  /// Announces that this rank's shard is written, and waits for the others'. Throws the error that ended the
  /// exchange.
  std::vector<WrittenShard> wait_for_others();
  /// Ends the save: there will be no folder and no more waiting.
  void close();

  /// Waits for the folder. Returns "" when the save ended without one.
  std::string wait_for_folder();
  /// Returns true when this rank's shard is written, or the save has ended.
  bool is_waiting() const;
  void wait_until_waiting() const;
  void give(std::vector<WrittenShard> others);
  /// Ends the exchange with an error: the others' shards will not come.
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
