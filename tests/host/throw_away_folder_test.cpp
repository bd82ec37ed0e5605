// A folder for the time of a call in a child process: who sees it, and what is left.
#include "host/throw_away_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// The child ends in `body`, or the rest of the tests would run in it, too.
int in_folder(const std::string& path, const std::function<int()>& body, bool owns = true) {
  return in_throw_away_folder(path, owns, [&]() -> int { _exit(body()); });
}

TEST(ThrowAwayFolder, ExistsDuringTheCallAndIsPrivate) {
  const TempDir dir;
  const std::string path = dir / "work";
  EXPECT_EQ(in_folder(path, [&] { return fs::is_empty(path) ? 7 : 1; }), 7);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(in_folder(path,
                      [&] {
                        const fs::perms open = fs::status(path).permissions() & ~fs::perms::owner_all;
                        return open == fs::perms::none ? 0 : 1;
                      }),
            0);
}

TEST(ThrowAwayFolder, StartsEmptyAndIsRemovedWithItsContents) {
  const TempDir dir;
  const std::string path = dir / "work";
  make_dirs(real_files(), path + "/stale");
  EXPECT_EQ(in_folder(path,
                      [&] {
                        const bool is_empty = fs::is_empty(path);
                        make_dirs(real_files(), path + "/deep/deeper");
                        return is_empty ? 0 : 1;
                      }),
            0);
  EXPECT_FALSE(fs::exists(path));
}

TEST(ThrowAwayFolder, IsGoneWhenTheChildWasKilled) {
  const TempDir dir;
  const std::string path = dir / "work";
  try {
    in_folder(path, [] { return std::raise(SIGKILL); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumerics);
    EXPECT_NE(std::string(error.what()).find("killed by SIGKILL: memory may have run out"),
              std::string::npos);
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(in_folder(path, [] { return std::raise(SIGTERM); }), 143);
  EXPECT_EQ(in_folder(path, [] { return std::raise(SIGUSR2); }), 140);
  EXPECT_EQ(in_folder(path,
                      [] {
                        kill(getppid(), SIGINT);  // is passed on
                        sleep(60);
                        return 0;
                      }),
            130);
  EXPECT_FALSE(fs::exists(path));
}

TEST(ThrowAwayFolder, IsAnErrorWhereItCannotBeMade) {
  const TempDir dir;
  EXPECT_THROW(in_folder(dir / "no/such/place", [] { return 0; }), Error);
}

TEST(ThrowAwayFolder, LeavesFoldersOfLiveProcessesAlone) {
  const TempDir dir;
  const std::string path = dir / "work";
  EXPECT_EQ(in_folder(
                path, [&] { return fs::exists(path) ? 1 : 0; }, /*owns=*/false),
            0);
  fs::create_directory(path);
  EXPECT_EQ(in_folder(
                path, [] { return 0; }, /*owns=*/false),
            0);
  EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace tycho
