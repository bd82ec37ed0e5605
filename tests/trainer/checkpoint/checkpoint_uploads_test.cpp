// Checkpoints on their way to a store: whatever stops them, what was committed there stays whole.
#include "trainer/checkpoint/checkpoint_uploads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/buckets/dying_bucket.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/buckets/folder_bucket.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {
namespace {

class CheckpointUploadsTest : public testing::Test {
 protected:
  std::shared_ptr<RemoteCheckpoints> remote(std::shared_ptr<Bucket> bucket = nullptr) {
    if (!bucket) bucket = make_folder_bucket(store_);
    return std::make_shared<RemoteCheckpoints>(std::move(bucket), "file://" + store_);
  }
  UploadSettings settings(std::shared_ptr<Bucket> bucket = nullptr, int64_t keep = 0) {
    return {.remote = remote(std::move(bucket)),
            .keep = keep,
            .epoch = 1,
            .first_wait_s = 0.001,
            .longest_wait_s = 0.01};
  }
  static void wait_until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 60'000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(is_so());
  }
  static void wait_for_all(const CheckpointUploads& uploads) {
    wait_until([&] { return uploads.num_behind() == 0; });
  }
  /// Steps of the store's checkpoints, newest first, each of whose bytes is as its step says.
  std::vector<int64_t> uploaded() {
    std::vector<int64_t> steps;
    std::vector<std::string> broken;
    for (const CheckpointInfo& info : remote()->list(&broken)) {
      CheckpointReader(info).verify();
      EXPECT_EQ(differences(info), "") << info.path;
      steps.push_back(info.step);
    }
    EXPECT_TRUE(broken.empty()) << broken.front();
    return steps;
  }
  std::vector<std::string> unfinished() {
    std::vector<std::string> names;
    remote()->list(nullptr, &names);
    return names;
  }
  /// Saves a checkpoint whose shards are those of two ranks.
  CheckpointInfo save_of_two(int64_t step) {
    const SampleState state(step);
    const std::vector<TensorBytes> first(state.tensors.begin(), state.tensors.begin() + 5),
        second(state.tensors.begin() + 5, state.tensors.end());
    return saves_.save(state.meta, 0, [&](const std::string& folder) {
      return std::vector{write_shard(real_files(), folder, rank_file_name(0), first),
                         write_shard(real_files(), folder, rank_file_name(1), second)};
    });
  }

  TempDir dir_;
  const std::string store_ = dir_ / "store", local_ = dir_ / "run/checkpoints";
  CheckpointStore saves_{real_files(), local_, 0, 1};
};

TEST_F(CheckpointUploadsTest, KeepsTheNewestInTheStore) {
  CheckpointUploads uploads(settings(nullptr, /*keep=*/2));
  uploads.begin({}, {});
  for (int64_t step = 1; step <= 4; ++step) uploads.add(save_step(saves_, step).path);
  wait_for_all(uploads);
  EXPECT_EQ(uploaded(), (std::vector<int64_t>{4, 3}));
  const std::vector<UploadEvent> events = uploads.take_events();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_NE(events.back().text.find("step 4 uploaded to file://" + store_), std::string::npos)
      << events.back().text;
}

TEST_F(CheckpointUploadsTest, FindsACheckpointByItsPlaceAndByItsRuns) {
  CheckpointUploads uploads(settings());
  uploads.begin({}, {});
  uploads.add(save_step(saves_, 1).path);
  const std::string name = std::filesystem::path(save_step(saves_, 2).path).filename();
  uploads.add(local_ + "/" + name);
  wait_for_all(uploads);
  for (const std::string& place : {"file://" + store_, "file://" + store_ + "/checkpoints/",
                                   "file://" + store_ + "/checkpoints/" + name}) {
    const CheckpointInfo found = find_checkpoint(place);
    EXPECT_EQ(found.step, 2) << place;
    EXPECT_EQ(found.path, "file://" + store_ + "/checkpoints/" + name);
    EXPECT_EQ(differences(found), "");
  }
  EXPECT_TRUE(failure_of([&] { find_checkpoint("file://" + dir_ / "other"); }).says("holds no checkpoint"));
}

// Damage in the store is found as damage on a disk is.
TEST_F(CheckpointUploadsTest, AChangedByteInTheStoreIsFound) {
  CheckpointUploads uploads(settings());
  uploads.begin({}, {});
  uploads.add(save_step(saves_, 1).path);
  wait_for_all(uploads);
  const CheckpointInfo info = remote()->list().front();
  const std::string path = info.path.substr(7) + "/rank-00000.safetensors";
  std::string bytes = read_file(path);
  bytes[bytes.size() - 3] ^= 1;
  write_file_atomically(real_files(), path, bytes);
  EXPECT_EQ(failure_of([&] { CheckpointReader(info).verify(); }).code, ExitCode::kUnusable);
}

TEST_F(CheckpointUploadsTest, ADeathAtEachOperationLosesNothing) {
  for (const bool late : {false, true}) {
    for (int at = 1, made = 1; at <= made; ++at) {
      SCOPED_TRACE(fmt::format("operation {}{}", at, late ? ", whose answer is lost" : ""));
      std::filesystem::remove_all(store_);
      std::filesystem::remove_all(local_);
      std::vector<std::string> folders;
      for (int64_t step = 1; step <= 2; ++step) folders.push_back(save_step(saves_, step).path);
      const auto dying = std::make_shared<DyingBucket>(make_folder_bucket(store_), at, late);
      {
        CheckpointUploads uploads(settings(dying, /*keep=*/1));
        uploads.begin(folders, {});
        wait_until([&] { return uploads.num_behind() == 0 || dying->calls() > at + 2; });
      }
      made = std::max(made, dying->calls() > at + 2 ? at + 1 : at);
      const std::vector<int64_t> before = uploaded();
      // The next start: what is there already is not sent again, and what is left is finished.
      CheckpointUploads next(settings(nullptr, /*keep=*/1));
      next.begin(folders, {});
      wait_for_all(next);
      const std::vector<int64_t> after = uploaded();
      ASSERT_FALSE(after.empty());
      EXPECT_EQ(after.front(), 2);
      EXPECT_TRUE(before.empty() || before.front() <= after.front());
      ASSERT_LT(at, 500);
    }
  }
}

TEST_F(CheckpointUploadsTest, AStartRemovesWhatNobodyWillFinish) {
  const std::string lost = std::filesystem::path(save_of_two(1).path).filename();
  {
    CheckpointUploads uploads(settings());  // its other rank never comes
    UploadSettings two = settings();
    two.num_ranks = 2;
    CheckpointUploads first(two);
    first.begin({}, {});
    first.add(local_ + "/" + lost);
    wait_until([&] { return unfinished().size() == 1; });
  }
  std::filesystem::remove_all(local_);
  CheckpointUploads uploads(settings());
  uploads.begin({}, {lost});
  uploads.add(save_step(saves_, 2).path);
  wait_for_all(uploads);
  EXPECT_EQ(uploaded(), std::vector<int64_t>{2});
  EXPECT_TRUE(unfinished().empty());
}

TEST_F(CheckpointUploadsTest, AStartAbortsUploadsThatAKillLeftHalfDone) {
  namespace fs = std::filesystem;
  const fs::path folder = store_ + "/checkpoints/step-000000009.aaaaaaaa",
                 half = folder / ".tycho-upload-1-1-rank-00000.safetensors";
  fs::create_directories(folder);
  std::ofstream(half) << "half";
  fs::last_write_time(half, fs::file_time_type::clock::now() - std::chrono::hours(1));
  CheckpointUploads uploads(settings());
  uploads.begin({}, {});
  wait_until([&] { return !fs::exists(half); });
}

TEST_F(CheckpointUploadsTest, TheCommitComesAfterThePartsOfAllRanks) {
  UploadSettings zero = settings(), one = settings();
  zero.num_ranks = one.num_ranks = 2;
  one.rank = 1;
  CheckpointUploads first(zero);
  first.begin({}, {});
  const std::string folder = save_of_two(1).path;
  first.add(folder);
  wait_until(
      [&] { return first.behind_text().find("rank-00001.safetensors is not there") != std::string::npos; });
  EXPECT_TRUE(uploaded().empty());
  CheckpointUploads second(one);
  second.begin({}, {});
  second.add(folder);
  wait_for_all(first);
  wait_for_all(second);
  EXPECT_EQ(uploaded(), std::vector<int64_t>{1});
}

TEST_F(CheckpointUploadsTest, LocalRetentionKeepsWhatIsNotUploaded) {
  const auto dying = std::make_shared<DyingBucket>(make_folder_bucket(store_), 1);
  CheckpointUploads uploads(settings(dying));
  uploads.begin({}, {});
  CheckpointStore saves(real_files(), local_, /*keep=*/1, 1);
  saves.set_needed([&](const std::string& uuid) { return uploads.needs(uuid); });
  for (int64_t step = 1; step <= 3; ++step) uploads.add(save_step(saves, step).path);
  EXPECT_EQ(steps_in(local_), (std::vector<int64_t>{3, 2, 1}));
  wait_until([&] { return dying->calls() > 2; });
  const std::vector<UploadEvent> events = uploads.take_events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().kind, "warning");
  EXPECT_NE(events.front().text.find("the store does not answer"), std::string::npos) << events.front().text;
  dying->die_at(0);
  wait_for_all(uploads);
  EXPECT_EQ(uploaded(), (std::vector<int64_t>{3, 2, 1}));
  save_step(saves, 4);
  EXPECT_EQ(steps_in(local_), std::vector<int64_t>{4});
}

TEST_F(CheckpointUploadsTest, MoreThanRemoteMaxLostEndTheRun) {
  UploadSettings few = settings(std::make_shared<DyingBucket>(make_folder_bucket(store_), 1));
  few.max_lost = 2;
  CheckpointUploads uploads(few);
  uploads.begin({}, {});
  for (int64_t step = 1; step <= 2; ++step) uploads.add(save_step(saves_, step).path);
  EXPECT_EQ(failure_of([&] { uploads.take_events(); }).code, ExitCode::kOk);
  uploads.add(save_step(saves_, 3).path);
  const Failure failure = failure_of([&] { uploads.take_events(); });
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says("3 checkpoints in a row are not in file://")) << failure.message;
  EXPECT_TRUE(failure.says("ckpt.remote_max_lost allows 2")) << failure.message;
}

TEST_F(CheckpointUploadsTest, ALostPlaceEndsTheRunAndCommitsNothing) {
  UploadSettings lost = settings();
  lost.check_owner = [](const std::stop_token&) { fail(ExitCode::kFolderOwned, "taken"); };
  CheckpointUploads uploads(lost);
  uploads.begin({}, {});
  uploads.add(save_step(saves_, 1).path);
  wait_until([&] { return failure_of([&] { uploads.take_events(); }).code == ExitCode::kFolderOwned; });
  EXPECT_TRUE(uploaded().empty());
}

TEST_F(CheckpointUploadsTest, ACheckpointThatWasRemovedDoesNotHoldUpTheNext) {
  const auto dying = std::make_shared<DyingBucket>(make_folder_bucket(store_), 1);
  CheckpointUploads uploads(settings(dying));
  uploads.begin({}, {});
  const std::string gone = save_step(saves_, 1).path;
  uploads.add(gone);
  uploads.add(save_step(saves_, 2).path);
  std::filesystem::remove_all(gone);
  dying->die_at(0);
  wait_for_all(uploads);
  EXPECT_EQ(uploaded(), std::vector<int64_t>{2});
}

}  // namespace
}  // namespace tycho
