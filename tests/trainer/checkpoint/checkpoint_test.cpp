// Saving and finding checkpoints: bytes come back, and every failure leaves what was committed.
#include "trainer/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "tests/trainer/checkpoint/dying_files.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

using Steps = std::vector<int64_t>;

mode_t mode_of(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

int64_t num_folders(const std::string& dir) {
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator(dir)) count += entry.is_directory();
  return count;
}

TEST(Checkpoint, BringsBackEveryByte) {
  const TempDir dir;
  const mode_t before = ::umask(022);
  CheckpointStore store(real_files(), dir / "checkpoints", 3, 1);
  const CheckpointInfo saved = save_step(store, 300);
  ::umask(before);
  EXPECT_TRUE(saved.warnings.empty());
  const CheckpointInfo found = find_checkpoint(dir.path());
  EXPECT_EQ(found.path, saved.path);
  EXPECT_EQ(found.uuid, saved.uuid);
  EXPECT_EQ(found.num_bytes, saved.num_bytes);
  EXPECT_EQ(found.manifest, saved.manifest);
  EXPECT_EQ(found.step, 300);
  EXPECT_EQ(differences(found), "");
  CheckpointReader(found).verify();
  EXPECT_EQ(read_file(dir / "checkpoints/latest"), fs::path(saved.path).filename().string() + "\n");
  EXPECT_EQ(fs::path(saved.path).filename().string(), "step-000000300." + saved.uuid.substr(0, 8));
  EXPECT_EQ(mode_of(saved.path), 0755u);
  for (const char* file : {"/COMMIT", "/rank-00000.safetensors", "/tokenizer.json"}) {
    EXPECT_EQ(mode_of(saved.path + file), 0644u) << file;
  }
}

TEST(Checkpoint, SpansManyHashBlocksAndVerifiesOnlyWhatIsRead) {
  const TempDir dir;
  const int64_t num_large = (int64_t{17} << 20) + 12345;
  SampleState state(1);
  std::vector<std::vector<char>> large;
  for (int64_t i = 0; i < 3; ++i) {
    large.push_back(expected_bytes(1, 100 + i, num_large * 2));
    state.tensors.push_back(
        {"large" + std::to_string(i), "BF16", {num_large}, large.back().data(), num_large * 2});
  }
  CheckpointStore store(real_files(), dir.path(), 1, 1);
  const CheckpointReader reader(store.save(state.meta, state.tensors));
  std::vector<char> bytes(static_cast<size_t>(num_large) * 2);
  for (int i : {2, 0, 1}) {
    reader.read("large" + std::to_string(i), bytes.data(), num_large * 2);
    EXPECT_TRUE(bytes == large[static_cast<size_t>(i)]) << i;
  }
  EXPECT_EQ(differences(reader.info()), "other tensors; ");

  const std::string shard = reader.info().path + "/rank-00000.safetensors";
  const int fd = ::open(shard.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "?", 1, static_cast<off_t>(fs::file_size(shard)) - 1), 1);
  ::close(fd);
  const CheckpointReader damaged(reader.info());
  damaged.read("large0", bytes.data(), num_large * 2);
  const Failure failure = failure_of([&] { damaged.read("large2", bytes.data(), num_large * 2); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says(shard)) << failure.message;
}

TEST(Checkpoint, RecordsItsParent) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  const CheckpointInfo first = save_step(store, 1);
  EXPECT_EQ(first.manifest["parent"], "");
  EXPECT_EQ(save_step(store, 2).manifest["parent"], first.uuid);
  CheckpointStore next(real_files(), dir.path(), 0, 2);
  next.set_resumed_from(first);
  EXPECT_EQ(save_step(next, 2).manifest["parent"], first.uuid);
}

TEST(Checkpoint, RefusesWhatItCouldNotReadBack) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  SampleState state(1);
  state.meta.files["../escape"] = "";
  EXPECT_TRUE(failure_of([&] {
                store.save(state.meta, state.tensors);
              }).says("'../escape' is not a valid file name"));
  SampleState twice(1);
  twice.tensors.push_back(twice.tensors.back());
  EXPECT_TRUE(failure_of([&] { store.save(twice.meta, twice.tensors); }).says("two tensors are named"));
  SampleState wrong(1);
  wrong.tensors.back().num_bytes -= 1;
  EXPECT_TRUE(failure_of([&] { store.save(wrong.meta, wrong.tensors); }).says("shape and dtype"));
  EXPECT_EQ(num_folders(dir.path()), 0);
}

/// Saves steps 1 to 4 with keep=2 until the injected fault stops it; returns the last step whose save
/// returned.
template <class Files>
int64_t save_until_fault(Files& files, const std::string& dir, bool go_on) {
  int64_t last = 0;
  CheckpointStore store(files, dir, 2, 1);
  for (int64_t step = 1; step <= 4; ++step) {
    try {
      save_step(store, step);
      last = step;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage) << error.what();
      EXPECT_NE(std::string(error.what()).find("needs about "), std::string::npos) << error.what();
      if (!go_on) break;
    } catch (const Died&) {
      break;
    }
  }
  return last;
}

void expect_previous_or_next(const std::string& dir, int64_t acknowledged, const std::string& where) {
  std::vector<std::string> broken;
  const std::vector<CheckpointInfo> found = list_checkpoints(dir, &broken);
  EXPECT_TRUE(broken.empty()) << where << ": " << broken.front();
  if (acknowledged == 0 && found.empty()) return;
  ASSERT_FALSE(found.empty()) << where;
  EXPECT_TRUE(found[0].step == acknowledged || found[0].step == acknowledged + 1)
      << where << ": " << found[0].step;
  const int64_t wanted = std::min<int64_t>(acknowledged, 2);
  EXPECT_GE(static_cast<int64_t>(found.size()), wanted) << where;
  for (const CheckpointInfo& info : found) EXPECT_EQ(differences(info), "") << where;
}

TEST(Checkpoint, SurvivesDeathAtEveryCall) {
  int num_calls = 0;
  {
    const TempDir dir;
    DyingFiles files;
    EXPECT_EQ(save_until_fault(files, dir / "c", false), 4);
    num_calls = files.calls();
  }
  EXPECT_GT(num_calls, 80);
  for (int at = 1; at <= num_calls; ++at) {
    for (const bool half : {false, true}) {
      const TempDir dir;
      DyingFiles files(at, half);
      const int64_t acknowledged = save_until_fault(files, dir / "c", false);
      expect_previous_or_next(dir / "c", acknowledged, "died at call " + std::to_string(at));
      // The next process goes on, and what the dead one left is swept.
      DyingFiles healthy;
      CheckpointStore store(healthy, dir / "c", 2, 2);
      save_step(store, 9);
      save_step(store, 10);
      EXPECT_EQ(steps_in(dir / "c"), (Steps{10, 9}));
      EXPECT_EQ(num_folders(dir / "c"), 2) << "died at call " << at;
    }
  }
}

TEST(Checkpoint, SurvivesAnErrorAtEveryCall) {
  for (const bool stay_broken : {false, true}) {
    for (int at = 1;; ++at) {
      const TempDir dir;
      FaultyFiles files(at, stay_broken);
      const int64_t acknowledged = save_until_fault(files, dir / "c", !stay_broken);
      if (!files.failed()) {
        EXPECT_GT(at, 80);
        break;
      }
      // A single fault costs one save at most, and the ones after it work.
      if (!stay_broken) {
        EXPECT_GE(acknowledged, 3) << at;
      }
      expect_previous_or_next(dir / "c", acknowledged, "call " + std::to_string(at));
    }
  }
}

TEST(Checkpoint, AFailureAfterCommitIsAWarning) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  fs::create_directories(dir / "latest/in_the_way");
  const CheckpointInfo saved = save_step(store, 1);
  ASSERT_EQ(saved.warnings.size(), 1u);
  EXPECT_NE(saved.warnings[0].find("latest"), std::string::npos);
  EXPECT_EQ(differences(find_checkpoint(dir.path())), "");
}

TEST(Checkpoint, AFullDiskKeepsTheOldOnesAndReportsFreeSpace) {
  const TempDir dir;
  if (::mount("tycho-test", dir.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "a small tmpfs can be mounted by root only";
  }
  Failure failure;
  Steps steps;
  std::string found;
  int64_t folders = 0;
  {
    CheckpointStore store(real_files(), dir / "c", 0, 1);
    for (int64_t step = 1; step <= 100 && failure.code == ExitCode::kOk; ++step) {
      failure = failure_of([&] { save_step(store, step); });
    }
    steps = steps_in(dir / "c");
    for (const CheckpointInfo& info : list_checkpoints(dir / "c")) found += differences(info);
    folders = num_folders(dir / "c");
  }
  ::umount(dir.path().c_str());
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says("No space left on device")) << failure.message;
  EXPECT_TRUE(failure.says("needs about 78.9 KB")) << failure.message;
  EXPECT_TRUE(failure.says("free in ")) << failure.message;
  EXPECT_GE(steps.size(), 5u);
  EXPECT_EQ(found, "");
  EXPECT_EQ(folders, static_cast<int64_t>(steps.size()));
}

TEST(Checkpoint, AFileSizeLimitKeepsTheOldOnes) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 1, 1);
  save_step(store, 1);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Failure failure = failure_of([&] { save_step(store, 2); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says("File too large")) << failure.message;
  EXPECT_EQ(steps_in(dir.path()), Steps{1});
  EXPECT_EQ(num_folders(dir.path()), 1);
}

TEST(Checkpoint, AFolderThatCannotBeWrittenIsAnErrorThatSaysSo) {
  const TempDir dir;
  real_files().create(dir / "file")->close();
  CheckpointStore inside_a_file(real_files(), dir / "file/checkpoints", 3, 1);
  const Failure failure = failure_of([&] { save_step(inside_a_file, 1); });
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says(dir / "file")) << failure.message;
  if (::geteuid() == 0) return;  // root may write anywhere
  fs::permissions(dir.path(), fs::perms::owner_read | fs::perms::owner_exec);
  CheckpointStore read_only(real_files(), dir / "checkpoints", 3, 1);
  EXPECT_TRUE(failure_of([&] { save_step(read_only, 1); }).says("choose a folder that you can write to"));
  fs::permissions(dir.path(), fs::perms::owner_all);
}

TEST(Checkpoint, ALostFolderIsNotCommittedTo) {
  const TempDir dir;
  bool lost = false;
  CheckpointStore store(real_files(), dir.path(), 3, 1, [&] {
    if (lost) fail(ExitCode::kFolderOwned, "[lock] taken over");
  });
  save_step(store, 1);
  lost = true;
  const Failure failure = failure_of([&] { save_step(store, 2); });
  EXPECT_EQ(failure.code, ExitCode::kFolderOwned);
  EXPECT_EQ(steps_in(dir.path()), Steps{1});
  EXPECT_EQ(num_folders(dir.path()), 1);
}

TEST(Checkpoint, MakesBytesAsTheyAreWritten) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  constexpr int64_t kNum = 5'000'000;  // more than one block
  const auto fill = [](int64_t begin, void* to, int64_t n) {
    for (int64_t i = 0; i < n / 4; ++i) static_cast<float*>(to)[i] = static_cast<float>(begin / 4 + i);
  };
  const CheckpointReader reader(store.save(
      {.step = 1}, {{.name = "made", .dtype = "F32", .shape = {kNum}, .num_bytes = kNum * 4, .fill = fill}}));
  std::vector<float> values(kNum);
  reader.read("made", values.data(), kNum * 4);
  for (int64_t i = 0; i < kNum; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], static_cast<float>(i));
}

TEST(Checkpoint, LeavesNothingWhenBytesCannotBeMade) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir.path(), 0, 1);
  const auto fill = [](int64_t begin, void*, int64_t) {
    if (begin > 100'000) fail(ExitCode::kUnusable, "[test] the source ends early");
  };
  const TensorBytes tensor = {
      .name = "made", .dtype = "F32", .shape = {100'000}, .num_bytes = 400'000, .fill = fill};
  EXPECT_THROW(store.save({.step = 1}, {tensor}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace tycho
