// A save: shards, COMMIT, the hint, retention, in an order that loses nothing if it is interrupted anywhere.
#include "trainer/checkpoint/checkpoint.h"

#include <filesystem>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {
namespace {

/// Removes the folder of a failed save. Files that cannot be removed now have no COMMIT and are swept after a
/// later save.
void abandon(FileOps& files, const std::string& folder) {
  try {
    if (std::filesystem::exists(folder)) remove_checkpoint(files, folder);
  } catch (...) {
    // The failure that led here is the one to report.
  }
}

/// Returns the disk space that a save takes in bytes, headers and COMMIT included.
int64_t estimated_bytes(const CheckpointMeta& meta, int64_t num_bytes) {
  constexpr int64_t kPerFile = 4096, kFixed = int64_t{64} << 10;
  int64_t total = num_bytes + kFixed;
  for (const auto& [name, text] : meta.files) total += static_cast<int64_t>(text.size()) + kPerFile;
  return total;
}

std::string free_text(const std::string& dir) {
  std::string existing = dir;
  while (!existing.empty() && !std::filesystem::exists(existing)) {
    existing = std::filesystem::path(existing).parent_path().string();
  }
  const int64_t free = free_bytes(existing.empty() ? "." : existing);
  return free < 0 ? "an unknown number of bytes" : human_bytes(static_cast<double>(free));
}

/// Runs a step that may fail after the commit, and keeps its error as a warning.
template <class Step>
void tolerate(CheckpointInfo& saved, Step step) {
  try {
    step();
  } catch (const Error& error) {
    if (error.code() != ExitCode::kStorage && error.code() != ExitCode::kUnusable) throw;
    saved.warnings.push_back(error.what());
  }
}

}  // namespace

CheckpointStore::CheckpointStore(FileOps& files, std::string dir, int64_t keep, int64_t epoch,
                                 std::function<void()> check_owner)
    : files_(files), dir_(std::move(dir)), keep_(keep), epoch_(epoch), check_owner_(std::move(check_owner)) {}

CheckpointInfo CheckpointStore::save(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors) {
  constexpr int64_t kPerTensor = 512;
  int64_t num_bytes = 0;
  for (const TensorBytes& tensor : tensors) num_bytes += tensor.num_bytes + kPerTensor;
  return save(meta, num_bytes, [&](const std::string& folder) {
    return std::vector{write_shard(files_, folder, rank_file_name(0), tensors)};
  });
}

CheckpointInfo CheckpointStore::save(const CheckpointMeta& meta, int64_t num_bytes,
                                     const WriteShards& write) {
  ++num_saves_;
  const std::string uuid = random_hex(16);
  const std::string folder = dir_ + "/" + checkpoint_folder_name(meta.step, uuid);
  CheckpointInfo saved;
  try {
    saved = commit(meta, write, folder, uuid);
    // The only copy there will be: read it back before the older one goes.
    if (keep_ == 1) CheckpointReader(saved).verify();
  } catch (const Error& error) {
    abandon(files_, folder);
    if (error.code() != ExitCode::kStorage && error.code() != ExitCode::kUnusable) throw;
    const double needed = static_cast<double>(estimated_bytes(meta, num_bytes));
    fail(ExitCode::kStorage,
         "[checkpoint] step {} was not saved: {} (needs about {}, {} free in {}; checkpoints saved before "
         "are untouched)",
         meta.step, error.what(), human_bytes(needed), free_text(dir_), dir_);
  } catch (...) {
    abandon(files_, folder);
    throw;
  }
  parent_ = uuid;
  retain(saved);
  return saved;
}

CheckpointInfo CheckpointStore::commit(const CheckpointMeta& meta, const WriteShards& write,
                                       const std::string& folder, const std::string& uuid) {
  make_dirs(files_, dir_);
  files_.make_dir(folder);
  Manifest manifest{.uuid = uuid,
                    .parent = parent_,
                    .epoch = epoch_,
                    .step = meta.step,
                    .save_number = num_saves_,
                    .world = meta.world.is_null() ? world_of_one() : meta.world,
                    .train_state = meta.train_state,
                    .recipe = meta.recipe,
                    .recipe_hash = meta.recipe_hash,
                    .tag = meta.tag,
                    .route = meta.route};
  add_shards(write(folder), manifest);
  for (const auto& [name, text] : meta.files) {
    TYCHO_CHECK(is_plain_file_name(name), "[checkpoint] '{}' is not a valid file name in a checkpoint", name);
    manifest.files.push_back(write_text(files_, folder, name, text));
  }
  // Names of the shards are durable before COMMIT's can be, and COMMIT's before the save returns.
  files_.sync_dir(folder);
  const std::string text = manifest_text(manifest);
  // What could not be read back is found before it is committed.
  Json json = manifest_json(parse_manifest(text, folder));
  check_owner();
  write_file_atomically(files_, folder + "/" + kCommitFile, text);
  files_.sync_dir(dir_);

  CheckpointInfo info{.path = folder,
                      .step = meta.step,
                      .epoch = epoch_,
                      .save_number = num_saves_,
                      .uuid = uuid,
                      .tag = meta.tag};
  info.num_bytes = static_cast<int64_t>(text.size());
  for (const FileRecord& file : manifest.files) info.num_bytes += file.num_bytes;
  info.manifest = std::move(json);
  return info;
}

void CheckpointStore::retain(CheckpointInfo& saved) {
  tolerate(saved, [&] {
    const std::string name = std::filesystem::path(saved.path).filename().string();
    write_file_atomically(files_, dir_ + "/" + kLatestFile, name + "\n");
  });
  tolerate(saved, [&] {
    if (keep_ == 0) return;
    for (const CheckpointInfo& old :
         superseded(list_checkpoints(dir_), keep_, epoch_, saved.uuid, resumed_from_)) {
      if (is_needed_ && is_needed_(old.uuid)) continue;
      check_owner();
      tolerate(saved, [&] {
        if (!is_linked(old.path)) remove_checkpoint(files_, old.path);
      });
    }
  });
  tolerate(saved, [&] {
    for (const std::string& problem : sweep_leftovers(files_, dir_, saved.step, [this] { check_owner(); })) {
      saved.warnings.push_back(problem);
    }
  });
}

void CheckpointStore::check_owner() const {
  if (check_owner_) check_owner_();
}

}  // namespace tycho
