// Copies of a checkpoint in one file and in many, and what damage does to them.
#include "trainer/checkpoint/reshard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "tests/trainer/checkpoint/dying_files.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

class ReshardTest : public testing::Test {
 protected:
  CheckpointInfo original(int64_t step) {
    SampleState state(step);
    state.meta.tag = "kept";
    state.meta.world = {{"ranks", 3}};
    CheckpointStore store(real_files(), dir_.path() + "/from", 0, 5);
    save_step(store, step);
    return store.save(state.meta, state.tensors);
  }
  std::string out(const std::string& name) const { return dir_.path() + "/" + name; }

  const TempDir dir_;
};

TEST_F(ReshardTest, AnyNumberOfFilesHoldsTheSameCheckpoint) {
  const CheckpointInfo from = original(3);
  for (const int num_files : {1, 2, 3, 7, 40}) {
    const std::string dir = out(std::to_string(num_files));
    const CheckpointInfo copy = reshard(CheckpointReader(from), real_files(), dir, num_files);
    const CheckpointInfo found = find_checkpoint(dir);
    EXPECT_EQ(found.path, copy.path);
    CheckpointReader(found).verify();
    EXPECT_EQ(differences(found), "") << num_files << " files";
    EXPECT_EQ(found.tag, "kept");
    EXPECT_EQ(found.epoch, 5);
    EXPECT_EQ(found.save_number, from.save_number);
    EXPECT_EQ(found.manifest["world"], from.manifest["world"]);
    EXPECT_EQ(found.manifest["parent"], from.uuid);
    const auto num_shards = std::count_if(fs::directory_iterator(found.path), {}, [](const auto& entry) {
      return entry.path().extension() == ".safetensors";
    });
    EXPECT_EQ(num_shards, num_files);
    // A copy of a copy, so that pieces of many files are read as well.
    const CheckpointInfo again = reshard(CheckpointReader(found), real_files(), dir + "-again", 2);
    EXPECT_EQ(differences(again), "");
  }
}

TEST_F(ReshardTest, FilesHaveEqualSizes) {
  const CheckpointInfo copy = reshard(CheckpointReader(original(3)), real_files(), out("4"), 4);
  int64_t total = 0, most = 0;
  for (const Json& tensor : copy.manifest["tensors"])
    for (const Json& piece : tensor["pieces"]) total += piece[2].get<int64_t>();
  for (int file = 0; file < 4; ++file) {
    int64_t in_file = 0;
    for (const Json& tensor : copy.manifest["tensors"])
      for (const Json& piece : tensor["pieces"])
        if (piece[0] == "rank-0000" + std::to_string(file) + ".safetensors")
          in_file += piece[2].get<int64_t>();
    most = std::max(most, in_file);
  }
  EXPECT_LE(most, total / 4 + 8);
}

TEST_F(ReshardTest, DamageEndsTheCopyAndLeavesNothing) {
  const CheckpointInfo from = original(3);
  {
    std::fstream file(from.path + "/rank-00000.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('\x55');
  }
  const Failure failure = failure_of([&] { reshard(CheckpointReader(from), real_files(), out("copy"), 2); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_NE(failure.message.find("is damaged in bytes"), std::string::npos) << failure.message;
  EXPECT_FALSE(fs::exists(out("copy")));
}

class KilledFiles : public DyingFiles {
  using DyingFiles::DyingFiles;
  void die() override { ::_exit(9); }
};

TEST_F(ReshardTest, ACopyThatWasKilledIsMadeByTheSameCommand) {
  const CheckpointInfo from = original(3);
  int killed = 0;
  for (int call = 1;; call += 3) {
    const std::string dir = out("copy-" + std::to_string(call));
    const pid_t child = ::fork();
    if (child == 0) {
      KilledFiles files(call);
      reshard(CheckpointReader(from), files, dir, 2);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status == 0) break;
    ++killed;
    if (!fs::exists(dir)) reshard(CheckpointReader(from), real_files(), dir, 2);
    CheckpointReader(find_checkpoint(dir)).verify();
    EXPECT_EQ(list_checkpoints(dir).size(), 1u) << "killed at call " << call;
  }
  EXPECT_GT(killed, 5);
}

TEST_F(ReshardTest, RefusesAbsurdNumbersOfFiles) {
  const CheckpointInfo from = original(3);
  for (const int wrong : {0, -1, 100'001})
    EXPECT_EQ(failure_of([&] { reshard(CheckpointReader(from), real_files(), out("x"), wrong); }).code,
              ExitCode::kUsage);
  EXPECT_FALSE(fs::exists(out("x")));
}

}  // namespace
}  // namespace tycho
