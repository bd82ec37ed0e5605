// Copies of checkpoints from a store: whole or continued, never half taken for whole.
#include "trainer/checkpoint/fetched_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/buckets/dying_bucket.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/buckets/folder_bucket.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/remote_checkpoints.h"

namespace tycho {
namespace {

class FetchedCheckpointTest : public testing::Test {
 protected:
  FetchedCheckpointTest() {
    CheckpointStore saves(real_files(), dir_ / "run/checkpoints", 0, 1);
    std::vector<char> large(static_cast<size_t>(2 * kHashBlockBytes + 12));
    for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 2654435761U >> 13);
    const auto num_bytes = static_cast<int64_t>(large.size());
    SampleState state(1);
    state.tensors.push_back({"model.large", "F32", {num_bytes / 4}, large.data(), num_bytes});
    saved_ = saves.save(state.meta, state.tensors);
    std::filesystem::create_directories(dir_ / "store");
    std::filesystem::rename(dir_ / "run/checkpoints", dir_ / "store/checkpoints");
    name_ = std::filesystem::path(saved_.path).filename();
    copy_ = dir_ / "copy/" + name_;
    original_ = dir_ / "store/checkpoints/" + name_;
  }
  /// Opens the checkpoint of the store, which dies at an operation.
  CheckpointInfo remote(int die_at = 0) {
    bucket_ = std::make_shared<DyingBucket>(make_folder_bucket(dir_ / "store"));
    CheckpointInfo info = RemoteCheckpoints(bucket_, "file://" + (dir_ / "store")).list().front();
    if (die_at > 0) bucket_->die_at(bucket_->calls() + die_at);
    return info;
  }
  int64_t fetched() const { return bucket_->bytes_read(); }
  void expect_copied() {
    for (const auto& file : std::filesystem::directory_iterator(original_)) {
      const std::string name = file.path().filename();
      EXPECT_EQ(read_file(copy_ + "/" + name), read_file(file.path())) << name;
    }
    CheckpointReader(find_checkpoint(dir_ / "copy")).verify();
  }
  static void change_byte(const std::string& path, size_t at) {
    std::string bytes = read_file(path);
    bytes[at] ^= 1;
    write_file_atomically(real_files(), path, bytes);
  }

  TempDir dir_;
  CheckpointInfo saved_;
  std::string name_, copy_, original_;
  std::shared_ptr<DyingBucket> bucket_;
};

TEST_F(FetchedCheckpointTest, IsTheOriginalByteForByte) {
  std::vector<FetchedFile> seen;
  const CheckpointInfo copy = fetch_checkpoint(remote(), real_files(), dir_ / "copy",
                                               [&](const FetchedFile& file) { seen.push_back(file); });
  EXPECT_EQ(copy.path, copy_);
  EXPECT_EQ(copy.uuid, saved_.uuid);
  expect_copied();
  EXPECT_EQ(seen.size(), 2U);
  for (const FetchedFile& file : seen) EXPECT_EQ(file.num_fetched, file.num_bytes) << file.name;
}

TEST_F(FetchedCheckpointTest, ContinuesAfterALossAtEachRequest) {
  int at = 1;
  for (bool is_done = false; !is_done; ++at) {
    SCOPED_TRACE(at);
    std::filesystem::remove_all(dir_ / "copy");
    is_done = true;
    try {
      fetch_checkpoint(remote(at), real_files(), dir_ / "copy");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      is_done = false;
      EXPECT_FALSE(std::filesystem::exists(copy_ + "/COMMIT"));
      EXPECT_THROW(find_checkpoint(dir_ / "copy"), Error);
    }
    const int64_t before = is_done ? saved_.num_bytes : fetched();
    fetch_checkpoint(remote(), real_files(), dir_ / "copy");
    expect_copied();
    EXPECT_LE(fetched(), saved_.num_bytes + kHashBlockBytes - before) << "whole blocks are not fetched again";
  }
  EXPECT_GE(at, 4);
}

TEST_F(FetchedCheckpointTest, ACopyThatIsHereIsCheckedAndMended) {
  fetch_checkpoint(remote(), real_files(), dir_ / "copy");
  fetch_checkpoint(remote(), real_files(), dir_ / "copy");
  EXPECT_EQ(fetched(), 0);
  const std::string shard = copy_ + "/rank-00000.safetensors";
  change_byte(shard, static_cast<size_t>(kHashBlockBytes) + 5);
  fetch_checkpoint(remote(), real_files(), dir_ / "copy");
  expect_copied();
  EXPECT_GT(fetched(), kHashBlockBytes);
  EXPECT_LT(fetched(), saved_.num_bytes - kHashBlockBytes + 1) << "the block before it was right";
  write_file_atomically(real_files(), shard, read_file(shard) + "more");
  fetch_checkpoint(remote(), real_files(), dir_ / "copy");
  expect_copied();
}

TEST_F(FetchedCheckpointTest, DamageInTheStoreIsNeverCommittedHere) {
  change_byte(original_ + "/rank-00000.safetensors", 100'000);
  try {
    fetch_checkpoint(remote(), real_files(), dir_ / "copy");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find("rank-00000.safetensors is damaged in block 0"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(copy_ + "/COMMIT"));
}

}  // namespace
}  // namespace tycho
