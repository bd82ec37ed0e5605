// Files that only the owner of a folder writes.
#include "trainer/lock/owned_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/lock/owner.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

/// Somebody else owns the folder, and it was a second ago that the lock was looked at.
void take_over(const TempDir& dir) {
  Owner owner = this_process(7);
  owner.boot_id = "another boot";
  write_file_atomically(real_files(), dir / "LOCK", owner_line(owner));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
}

TEST(OwnedFiles, WorkLikeTheRealOnesWhileTheFolderIsOurs) {
  const TempDir dir;
  const RunLock lock(real_files(), dir.path());
  OwnedFiles files(real_files(), lock);
  make_dirs(files, dir / "a/b");
  write_file_atomically(files, dir / "a/b/text", "whole");
  EXPECT_EQ(read_file(dir / "a/b/text"), "whole");
  EXPECT_TRUE(files.link(dir / "a/b/text", dir / "second"));
  EXPECT_FALSE(files.link(dir / "LOCK", dir / "second")) << "somebody has the name";
  const auto file = files.append(dir / "second");
  file->write(" more", 5);
  file->close();
  EXPECT_EQ(read_file(dir / "a/b/text"), "whole more");
  files.remove_file(dir / "second");
  files.remove_file(dir / "a/b/text");
  files.remove_dir(dir / "a/b");
  EXPECT_FALSE(fs::exists(dir / "a/b"));
}

TEST(OwnedFiles, NothingIsWrittenAfterTheFolderIsLost) {
  const TempDir dir;
  const RunLock lock(real_files(), dir.path());
  OwnedFiles files(real_files(), lock);
  const auto lines = files.append(dir / "lines");
  lines->write("ours\n", 5);
  const auto shard = files.create(dir / "shard", /*direct=*/true, Readers::kUmask);
  shard->write("buffered", 8);
  take_over(dir);

  const auto is_refused = [](const std::function<void()>& action) {
    return failure_of(action).code == ExitCode::kFolderOwned;
  };
  EXPECT_TRUE(is_refused([&] { lines->write("late\n", 5); }));
  EXPECT_TRUE(is_refused([&] { shard->close(); }));
  EXPECT_TRUE(is_refused([&] { files.create(dir / "new", false, Readers::kUmask); }));
  EXPECT_TRUE(is_refused([&] { files.append(dir / "new"); }));
  EXPECT_TRUE(is_refused([&] { files.make_dir(dir / "new"); }));
  EXPECT_TRUE(is_refused([&] { files.rename(dir / "lines", dir / "new"); }));
  EXPECT_TRUE(is_refused([&] { files.link(dir / "lines", dir / "new"); }));
  EXPECT_TRUE(is_refused([&] { files.remove_file(dir / "lines"); }));
  EXPECT_TRUE(is_refused([&] { files.remove_dir(dir.path()); }));
  EXPECT_EQ(read_file(dir / "lines"), "ours\n");
  EXPECT_FALSE(fs::exists(dir / "new"));
}

}  // namespace
}  // namespace tycho
