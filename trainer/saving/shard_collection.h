// The ranks that write one checkpoint together: each writes its shard, and rank 0 collects what COMMIT says
// of all.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/comm/communicator.h"
#include "trainer/saving/shard_exchange.h"
#include "trainer/saving/writer_thread.h"

namespace tycho {

/// Functions of the trainer's thread alone communicate with other ranks.
class ShardCollection {
 public:
  using Tensors = std::vector<TensorBytes>;

  /// `writers`: ranks of the world, ascending from 0. With `joins`, rank 0 makes one file of all shards.
  ShardCollection(std::vector<int> writers, bool joins, FileOps& files, Communicator& world);

  bool is_shared() const { return writers_.size() > 1; }
  /// Returns true if this rank writes.
  bool writes() const;

  // On the writer's thread of rank 0.
  /// Estimates the bytes of a checkpoint of which this rank has `tensors`.
  int64_t estimated_bytes(const Tensors& tensors) const;
  /// Writes this rank's shard. Returns the files of all ranks, once all are written.
  std::vector<WrittenShard> write_with_others(const std::string& folder, const Tensors& tensors);
  /// Ends the save, whatever came of it.
  void close();

  // On the trainer's thread.
  /// Prepares rank 0 for a save, before its writer starts.
  void open();
  /// Lets the other ranks write `tensors` into the folder that rank 0's writer has made. Collective.
  void start_others(WriterThread& writer, Tensors tensors);
  /// Passes the shards that all ranks have written to rank 0. With `wait`, waits for those that are not
  /// written yet; otherwise does nothing then. Collective while is_collecting().
  void collect(WriterThread& writer, bool wait);
  /// Returns true while shards are being written.
  bool is_collecting() const { return is_collecting_; }
  /// Ends a save in flight with an error.
  void give_up(const Error& why);

 private:
  bool commits() const { return world_.rank() == 0; }
  /// Returns the name of this rank's shard: part of a checkpoint until shards are joined.
  std::string shard_name() const;
  void write_own(const std::string& folder, const Tensors& tensors);
  void give(const std::vector<std::string>& of_ranks);

  std::vector<int> writers_;
  bool joins_;
  FileOps& files_;
  Communicator& world_;
  std::unique_ptr<ShardExchange> exchange_;  // on rank 0
  std::string own_shard_;                    // on other ranks: the shard written, as JSON
  bool is_collecting_ = false;
};

}  // namespace tycho
