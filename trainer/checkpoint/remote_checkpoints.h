// Checkpoints in a store of objects, laid out as in a run folder: listed, read by ranges, removed.
// Torch-free.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/buckets/bucket.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// Returns true for "s3://bucket/run" and the like, and for "file:///FOLDER".
bool is_place_of_store(const std::string& text);

/// The checkpoints of one place. From any thread.
class RemoteCheckpoints {
 public:
  /// `place` is the name of the bucket's place in messages and paths: "s3://bucket/run". Checkpoints are the
  /// folders below `inside`, "checkpoints/" or "".
  RemoteCheckpoints(std::shared_ptr<Bucket> bucket, std::string place, std::string inside = "checkpoints/");

  const std::string& place() const { return place_; }
  Bucket& bucket() const { return *bucket_; }
  /// Returns the name of an object: "checkpoints/step-000000300.1a2b3c4d/COMMIT".
  std::string object_name(const std::string& folder, const std::string& file) const;

  /// Returns the committed checkpoints, newest first; see list_checkpoints(). Reads each COMMIT once. Throws
  /// Error when the store cannot be listed or read.
  std::vector<CheckpointInfo> list(std::vector<std::string>* broken = nullptr,
                                   std::vector<std::string>* unfinished = nullptr,
                                   const std::stop_token& stop = {});
  /// Removes COMMIT, then the other objects of a folder. A kill in between leaves a folder without COMMIT.
  void remove(const std::string& folder, const std::stop_token& stop = {});

 private:
  CheckpointInfo read_info(const std::string& folder, const std::map<std::string, int64_t>& sizes,
                           const std::stop_token& stop);

  const std::shared_ptr<Bucket> bucket_;
  const std::string place_, inside_;
  std::mutex mutex_;
  std::map<std::string, std::string> commits_;  // text by folder, as far as read
};

/// Opens the checkpoints of a run. Makes no request.
std::shared_ptr<RemoteCheckpoints> open_remote_checkpoints(const std::string& place);

/// Opens the checkpoints at or below a place: of a run, of a folder of checkpoints, or of one checkpoint,
/// which is then the only one. Throws Error (kUnusable) that says what is there when there is none.
std::vector<CheckpointInfo> list_remote_checkpoints(const std::string& place,
                                                    std::vector<std::string>* broken = nullptr,
                                                    std::vector<std::string>* unfinished = nullptr);

/// Returns the newest of list_remote_checkpoints(). Throws Error (kUnusable) that says what is there when
/// none can be read.
CheckpointInfo find_remote_checkpoint(const std::string& place);

}  // namespace tycho
