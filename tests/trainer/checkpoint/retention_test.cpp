// What goes, what stays, and in which order files leave.
#include "trainer/checkpoint/retention.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

using Steps = std::vector<int64_t>;

CheckpointInfo info(int64_t epoch, int64_t step) {
  return {.step = step, .epoch = epoch, .uuid = std::to_string(epoch) + "/" + std::to_string(step)};
}

Steps steps_of(const std::vector<CheckpointInfo>& infos) {
  Steps steps;
  for (const CheckpointInfo& each : infos) steps.push_back(each.step);
  return steps;
}

TEST(Retention, KeepsTheNewestAndRemovesTheOldestFirst) {
  const std::vector<CheckpointInfo> all = {info(1, 5), info(1, 4), info(1, 3), info(1, 2), info(1, 1)};
  EXPECT_EQ(steps_of(superseded(all, 2, 1, "1/5", "")), (Steps{1, 2, 3}));
  EXPECT_EQ(steps_of(superseded(all, 1, 1, "1/5", "")), (Steps{1, 2, 3, 4}));
  EXPECT_EQ(steps_of(superseded(all, 5, 1, "1/5", "")), Steps{});
  EXPECT_EQ(steps_of(superseded(all, 0, 1, "1/5", "")), Steps{});
}

TEST(Retention, SparesWhatTheRunResumedFrom) {
  // Resumed at 3 of epoch 1 although 5 was there; 4 and 5 of epoch 1 are another branch and do not count as
  // newer.
  std::vector<CheckpointInfo> all = {info(2, 4), info(1, 5), info(1, 4), info(1, 3), info(1, 2)};
  EXPECT_EQ(steps_of(superseded(all, 1, 2, "2/4", "1/3")), (Steps{2, 4, 5}));
  all.insert(all.begin(), info(2, 5));
  EXPECT_EQ(steps_of(superseded(all, 1, 2, "2/5", "1/3")), (Steps{2, 3, 4, 5, 4}));
}

TEST(Retention, NeverRemovesWhatWasJustSaved) {
  EXPECT_EQ(steps_of(superseded({info(3, 9), info(2, 4)}, 1, 2, "2/4", "")), Steps{});
}

TEST(Retention, FollowsARunThatResumes) {
  const TempDir dir;
  CheckpointStore first(real_files(), dir.path(), 2, 1);
  for (int64_t step = 1; step <= 4; ++step) save_step(first, step);
  EXPECT_EQ(steps_in(dir.path()), (Steps{4, 3}));
  CheckpointStore second(real_files(), dir.path(), 1, 2);
  second.set_resumed_from(list_checkpoints(dir.path()).at(1));  // step 3
  save_step(second, 4);
  EXPECT_EQ(steps_in(dir.path()), (Steps{4, 3}));
  save_step(second, 5);
  EXPECT_EQ(steps_in(dir.path()), Steps{5});
  CheckpointStore all(real_files(), dir.path(), 0, 3);
  for (int64_t step = 6; step <= 9; ++step) save_step(all, step);
  EXPECT_EQ(steps_in(dir.path()).size(), 5u);
}

TEST(Retention, ReadsBackTheOnlyCopyBeforeTheOldOneGoes) {
  /// Loses one byte of every shard after it was written, as a bad disk does.
  class BadDisk : public FileOps {
   public:
    std::string damage;
    void rename(const std::string& from, const std::string& to) override {
      FileOps::rename(from, to);
      if (damage.empty() || !to.ends_with(kCommitFile)) return;
      const std::string shard = fs::path(to).parent_path().string() + "/" + damage;
      fs::resize_file(shard, fs::file_size(shard) - 1);
      fs::resize_file(shard, fs::file_size(shard) + 1);
    }
  };
  const TempDir dir;
  BadDisk files;
  CheckpointStore store(files, dir.path(), 1, 1);
  save_step(store, 1);
  files.damage = "rank-00000.safetensors";
  const Failure failure = failure_of([&] { save_step(store, 2); });
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says("is damaged")) << failure.message;
  EXPECT_EQ(steps_in(dir.path()), Steps{1});
  files.damage.clear();
  save_step(store, 3);
  EXPECT_EQ(steps_in(dir.path()), Steps{3});
}

TEST(Retention, SweepsOnlyOldLeftovers) {
  const TempDir dir;
  const std::string hex = ".0123abcd";
  for (const char* name : {"step-000000001", "step-000000004", "step-000000009"}) {
    fs::create_directories(dir / (name + hex));
    real_files().create(dir / (name + hex) + "/rank-00000.safetensors")->close();
  }
  real_files().create(dir / ("step-000000001" + hex) + "/COMMIT")->close();  // damaged, but nobody's leftover
  fs::create_directories(dir / "step-000000002.mine");
  fs::create_directories(dir / "other");
  real_files().create(dir / "latest.tmp-77")->close();
  CheckpointStore store(real_files(), dir.path(), 1, 1);
  EXPECT_TRUE(save_step(store, 5).warnings.empty());
  EXPECT_TRUE(fs::exists(dir / ("step-000000001" + hex)));
  EXPECT_FALSE(fs::exists(dir / ("step-000000004" + hex)));
  EXPECT_TRUE(fs::exists(dir / ("step-000000009" + hex)));
  EXPECT_TRUE(fs::exists(dir / "step-000000002.mine"));
  EXPECT_TRUE(fs::exists(dir / "other"));
  EXPECT_FALSE(fs::exists(dir / "latest.tmp-77"));
}

TEST(Retention, WhatAKilledSaveLeftGoesAtTheNextSave) {
  const TempDir dir, archive;
  const auto touch = [](const std::string& path) { real_files().create(path)->close(); };
  const auto folder = [&](const char* name) {
    fs::create_directories(dir / name);
    return dir / name;
  };
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  const CheckpointInfo whole = save_step(store, 1);
  touch(whole.path + "/COMMIT.tmp-11");
  const std::string same = folder("step-000000005.0123abcd"), later = folder("step-000000009.0123abcd");
  for (const std::string& path : {same, later}) {
    touch(path + "/rank-00000.safetensors");
    touch(path + "/COMMIT.tmp-12");
  }
  touch(archive / "COMMIT.tmp-13");
  fs::create_directory_symlink(archive.path(), dir / "step-000000002.0123abcd");

  EXPECT_TRUE(save_step(store, 5).warnings.empty());
  EXPECT_FALSE(fs::exists(whole.path + "/COMMIT.tmp-11"));
  EXPECT_NO_THROW(CheckpointReader(whole).verify());
  EXPECT_FALSE(fs::exists(same)) << "it was of the step that is saved now";
  EXPECT_FALSE(fs::exists(later + "/COMMIT.tmp-12"));
  EXPECT_TRUE(fs::exists(later + "/rank-00000.safetensors"));
  EXPECT_TRUE(fs::exists(archive / "COMMIT.tmp-13"));
}

TEST(Retention, NothingIsRemovedThroughALink) {
  const TempDir dir, archive;
  CheckpointStore store(real_files(), dir.path(), 1, 1);
  const CheckpointInfo moved = save_step(store, 1);
  const std::string home = archive / fs::path(moved.path).filename().string();
  fs::rename(moved.path, home);
  fs::create_directory_symlink(home, moved.path);
  // An unfinished save that somebody moved away and linked back.
  fs::create_directories(archive / "unfinished");
  real_files().create(archive / "unfinished/rank-00000.safetensors")->close();
  fs::create_directory_symlink(archive / "unfinished", dir / "step-000000001.0123abcd");

  for (int64_t step = 2; step <= 4; ++step) EXPECT_TRUE(save_step(store, step).warnings.empty());
  EXPECT_EQ(steps_in(dir.path()), (Steps{4, 1}));
  CheckpointReader(find_checkpoint(home)).verify();
  EXPECT_TRUE(fs::exists(archive / "unfinished/rank-00000.safetensors"));
  const Failure failure = failure_of([&] { remove_checkpoint(real_files(), moved.path); });
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says("is a link")) << failure.message;
}

TEST(Retention, ACheckpointWithALinkedShardStaysWhole) {
  const TempDir dir, archive;
  CheckpointStore store(real_files(), dir.path(), 1, 1);
  const std::string shard = save_step(store, 1).path + "/rank-00000.safetensors";
  fs::rename(shard, archive / "shard");
  fs::create_symlink(archive / "shard", shard);
  for (int64_t step = 2; step <= 3; ++step) EXPECT_TRUE(save_step(store, step).warnings.empty());
  EXPECT_EQ(steps_in(dir.path()), (Steps{3, 1}));
  EXPECT_TRUE(fs::exists(archive / "shard"));
}

TEST(Retention, WhatCannotBeRemovedIsAWarning) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 1, 1);
  const CheckpointInfo old = save_step(store, 1);
  fs::create_directories(old.path + "/notes/of_a_person");
  const CheckpointInfo saved = save_step(store, 2);
  ASSERT_FALSE(saved.warnings.empty());
  EXPECT_NE(saved.warnings[0].find("notes"), std::string::npos) << saved.warnings[0];
  EXPECT_EQ(steps_in(dir.path()), Steps{2});
}

TEST(Retention, ChecksTheOwnerBeforeEachRemoval) {
  const TempDir dir;
  int allowed = 3;  // COMMIT of 1, of 2, the removal of 1
  CheckpointStore store(real_files(), dir.path(), 1, 1, [&] {
    if (allowed-- == 0) fail(ExitCode::kFolderOwned, "[lock] taken over");
  });
  save_step(store, 1);
  save_step(store, 2);
  allowed = 1;
  EXPECT_EQ(failure_of([&] { save_step(store, 3); }).code, ExitCode::kFolderOwned);
  EXPECT_EQ(steps_in(dir.path()), (Steps{3, 2}));
}

TEST(Retention, KnowsItsFolderNames) {
  EXPECT_EQ(checkpoint_folder_name(300, "0123456789abcdef"), "step-000000300.01234567");
  EXPECT_EQ(step_of_folder_name("step-000000300.01234567"), 300);
  EXPECT_EQ(step_of_folder_name(checkpoint_folder_name(12345678901, "0123456789abcdef")), 12345678901);
  for (const char* name : {"step-000000300", "step-00000300.01234567", "step-000000300.0123456g", "latest",
                           "", "step-00000030x.01234567", "step-000000300x01234567",
                           "step-99999999999999999999999999.01234567", "step--00000300.01234567"}) {
    EXPECT_FALSE(step_of_folder_name(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace tycho
