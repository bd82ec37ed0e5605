// Finding checkpoints: COMMIT decides, the newest wins, and nothing readable is an error that lists what is
// there.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/base/hash.h"
#include "trainer/checkpoint/retention.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

void write_plain(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::vector<std::string> uuids_in(const std::string& dir) {
  std::vector<std::string> uuids;
  for (const CheckpointInfo& info : list_checkpoints(dir)) uuids.push_back(info.uuid);
  return uuids;
}

/// As versions of Tycho wrote it that did not number saves.
void remove_save_number(const CheckpointInfo& info) {
  Json json = info.manifest;
  ASSERT_EQ(json.erase("save_number"), 1U);
  const std::string rest = "\"," + canonical_json(json).substr(1) + "\n";
  write_plain(info.path + "/COMMIT", "{\"hash\":\"" + hash_hex(rest) + rest);
}

TEST(Listing, OrdersByEpochAndThenByWhatWasSavedLast) {
  const TempDir dir;
  CheckpointStore first(real_files(), dir.path(), 0, 1), second(real_files(), dir.path(), 0, 2);
  save_step(second, 5);
  // Step 30 was left again: training went on from 10.
  for (const int64_t step : {10, 20, 30, 15}) save_step(first, step);
  save_step(second, 15);
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{15, 5, 15, 30, 20, 10}));
}

TEST(Listing, OfSeveralOfOneStepTheOneSavedLastIsTheNewest) {
  const TempDir dir;
  std::vector<std::string> newest_first;
  for (const int64_t epoch : {1, 2}) {
    CheckpointStore store(real_files(), dir.path(), 0, epoch);
    // Names of folders are drawn, so that many in the right order are no accident.
    for (int i = 0; i < 6; ++i) newest_first.insert(newest_first.begin(), save_step(store, 7).uuid);
  }
  EXPECT_EQ(uuids_in(dir.path()), newest_first);
  EXPECT_EQ(find_checkpoint(dir.path()).uuid, newest_first.front());
}

TEST(Listing, ASaveThatFailedCountsToo) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  const CheckpointInfo before = save_step(store, 7);
  SampleState refused(7);
  refused.meta.files["../escape"] = "";
  EXPECT_NE(failure_of([&] { store.save(refused.meta, refused.tensors); }).code, ExitCode::kOk);
  EXPECT_EQ(uuids_in(dir.path()), (std::vector<std::string>{save_step(store, 7).uuid, before.uuid}));
}

TEST(Listing, WithoutNumbersTheHigherStepIsTheNewer) {
  const TempDir dir;
  CheckpointStore first(real_files(), dir.path(), 0, 1), second(real_files(), dir.path(), 0, 2);
  for (const int64_t step : {30, 10, 20}) remove_save_number(save_step(first, step));
  for (const int64_t step : {15, 5}) remove_save_number(save_step(second, step));
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{15, 5, 30, 20, 10}));
}

TEST(Listing, AcceptsACheckpointARunAndAFolderOfCheckpoints) {
  const TempDir run;
  CheckpointStore store(real_files(), run / "checkpoints", 0, 1);
  const CheckpointInfo old = save_step(store, 1), newest = save_step(store, 2);
  EXPECT_EQ(find_checkpoint(run.path()).uuid, newest.uuid);
  EXPECT_EQ(find_checkpoint(run.path() + "/").uuid, newest.uuid);
  EXPECT_EQ(find_checkpoint(run / "checkpoints").uuid, newest.uuid);
  EXPECT_EQ(find_checkpoint(run / "checkpoints/").uuid, newest.uuid);
  EXPECT_EQ(find_checkpoint(old.path).uuid, old.uuid);
}

TEST(Listing, TheHintIsOnlyAHint) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  const CheckpointInfo old = save_step(store, 1), newest = save_step(store, 2);
  EXPECT_TRUE(find_checkpoint(dir.path()).warnings.empty());
  write_plain(dir / "latest", fs::path(old.path).filename().string() + "\n");
  CheckpointInfo found = find_checkpoint(dir.path());
  EXPECT_EQ(found.uuid, newest.uuid);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("names step-000000001"), std::string::npos) << found.warnings[0];
  for (const std::string& garbage : {std::string(), std::string("\0\x1b[2J", 5), std::string(100000, '/')}) {
    write_plain(dir / "latest", garbage);
    found = find_checkpoint(dir.path());
    EXPECT_EQ(found.uuid, newest.uuid);
    ASSERT_EQ(found.warnings.size(), 1u);
    EXPECT_NE(found.warnings[0].find("names an unknown name"), std::string::npos) << found.warnings[0];
  }
  fs::remove(dir / "latest");
  EXPECT_EQ(find_checkpoint(dir.path()).uuid, newest.uuid);
  EXPECT_TRUE(find_checkpoint(dir.path()).warnings.empty());
}

TEST(Listing, ADamagedNewestFallsBackWithAWarning) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  save_step(store, 1);
  const CheckpointInfo newest = save_step(store, 2);
  fs::resize_file(newest.path + "/rank-00000.safetensors", 100);
  const CheckpointInfo found = find_checkpoint(dir.path());
  EXPECT_EQ(found.step, 1);
  std::string warnings;
  for (const std::string& warning : found.warnings) warnings += warning + "\n";
  EXPECT_NE(warnings.find("left out step-000000002"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("has 100 bytes, COMMIT says"), std::string::npos) << warnings;
}

TEST(Listing, NoReadableCheckpointIsAnErrorThatListsTheCandidates) {
  const TempDir dir;
  Failure failure = failure_of([&] { find_checkpoint(dir / "absent"); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("absent is not a folder")) << failure.message;
  EXPECT_FALSE(failure.says("run_dir")) << failure.message;
  failure = failure_of([&] { find_checkpoint(dir / "mine.lua"); });
  EXPECT_TRUE(failure.says("A recipe's run is in the folder that its run_dir names")) << failure.message;
  failure = failure_of([&] { find_checkpoint(dir.path()); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("it is empty")) << failure.message;
  write_plain(dir / "notes.txt", "");
  EXPECT_TRUE(failure_of([&] { find_checkpoint(dir.path()); }).says("it holds notes.txt"));

  CheckpointStore store(real_files(), dir / "checkpoints", 0, 1);
  const CheckpointInfo first = save_step(store, 1), second = save_step(store, 2);
  fs::remove(first.path + "/COMMIT");
  write_plain(second.path + "/COMMIT", "{}");
  failure = failure_of([&] { find_checkpoint(dir.path()); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("step-000000001." + first.uuid.substr(0, 8) + ": no COMMIT")) << failure.message;
  EXPECT_TRUE(failure.says("COMMIT is not a Tycho COMMIT (2 bytes)")) << failure.message;
  failure = failure_of([&] { find_checkpoint(first.path); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("its save did not finish")) << failure.message;
  failure = failure_of([&] { find_checkpoint(second.path); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);

  std::vector<std::string> broken, unfinished;
  EXPECT_TRUE(list_checkpoints(dir / "checkpoints", &broken, &unfinished).empty());
  EXPECT_EQ(broken.size(), 1u);
  EXPECT_EQ(unfinished.size(), 1u);
  EXPECT_TRUE(list_checkpoints(dir / "absent", &broken, &unfinished).empty());
  EXPECT_EQ(failure_of([&] { list_checkpoints(dir / "notes.txt"); }).code, ExitCode::kUnusable);
}

TEST(Listing, ReportsFreeSpace) {
  const TempDir dir;
  EXPECT_GT(free_bytes(dir.path()), 0);
  EXPECT_EQ(free_bytes(dir / "absent"), -1);
}

}  // namespace
}  // namespace tycho
