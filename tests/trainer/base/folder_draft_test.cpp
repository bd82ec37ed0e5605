// A folder that is written beside its place, by processes that fail, are killed or meet each other.
#include "trainer/base/folder_draft.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/dying_files.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class KilledFiles : public DyingFiles {
  using DyingFiles::DyingFiles;
  void die() override { ::_exit(9); }
};

void make(FileOps& files, const std::string& path) {
  FolderDraft draft(files, path);
  files.make_dir(draft.dir() + "/below");
  for (const char* name : {"/one", "/below/two"}) write_file_atomically(files, draft.dir() + name, "text");
  draft.publish();
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    names.insert(fs::relative(entry.path(), folder).string());
  return names;
}

const std::set<std::string> kWhole = {"one", "below", "below/two"};

/// `make` in a process that is killed at a call; false when it came to its end before.
bool is_killed_at(int call, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    KilledFiles files(call);
    make(files, path);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status != 0;
}

TEST(FolderDraft, IsNotThereOrWholeWhereverItsProcessIsKilled) {
  const TempDir dir;
  int call = 1;
  for (;; ++call) {
    const std::string path = dir / std::to_string(call);
    if (!is_killed_at(call, path)) break;
    if (!fs::exists(path)) {
      EXPECT_TRUE(is_free_for_draft(path));
      make(real_files(), path);
    }
    EXPECT_EQ(names_in(path), kWhole) << "killed at call " << call;
  }
  EXPECT_GT(call, 10);
  for (const auto& entry : fs::directory_iterator(dir.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path() << " was left";
}

TEST(FolderDraft, AFailureLeavesNothing) {
  const TempDir dir;
  int failures = 0;
  for (int call = 1; call < 100; ++call) {
    FaultyFiles files(call);
    try {
      make(files, dir / "out");
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      EXPECT_EQ(names_in(dir.path()), std::set<std::string>{}) << "after call " << call;
      ++failures;
    }
  }
  EXPECT_GT(failures, 8);
  EXPECT_EQ(names_in(dir / "out"), kWhole);
}

TEST(FolderDraft, TakesAnEmptyFolderAndTheOneThatALinkNames) {
  const TempDir dir;
  for (const char* name : {"empty", "linked"}) fs::create_directory(dir / name);
  fs::create_directory_symlink(dir / "linked", dir / "link");
  for (const char* name : {"empty", "link", "new/", "a/b/deep"}) {
    EXPECT_TRUE(is_free_for_draft(dir / name)) << name;
    make(real_files(), dir / name);
    EXPECT_EQ(names_in(dir / name), kWhole) << name;
    EXPECT_FALSE(is_free_for_draft(dir / name)) << name;
  }
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(names_in(dir / "linked"), kWhole);
}

TEST(FolderDraft, TheFolderThatAProcessIsInStaysTheOneThatItIs) {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::create_directory(dir / "here");
  fs::current_path(dir / "here");
  EXPECT_TRUE(is_killed_at(4, "."));
  EXPECT_TRUE(is_free_for_draft("."));
  make(real_files(), ".");
  EXPECT_EQ(names_in("."), kWhole) << "seen from inside, and without the draft";
  make(real_files(), "below-here");
  EXPECT_EQ(names_in("below-here"), kWhole) << "a name without a folder";
  fs::remove_all("below-here");
  fs::current_path(before);
  EXPECT_EQ(names_in(dir / "here"), kWhole);
}

TEST(FolderDraft, TwoProcessesDoNotWriteTheSameFolder) {
  const TempDir dir;
  const FolderDraft first(real_files(), dir / "out");
  std::ofstream(first.dir() + "/one") << "text";
  try {
    FolderDraft second(real_files(), dir / "out");
    ADD_FAILURE() << "both write";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kFolderOwned);
    EXPECT_EQ(error.what(),
              "[files] " + (dir / "out") +
                  " is being written by another process; wait for it, or choose another folder");
  }
  EXPECT_TRUE(fs::exists(first.dir() + "/one")) << "the first one's file was removed";
}

TEST(FolderDraft, ALinkInThePlaceOfTheDraftIsNotFollowed) {
  const TempDir dir;
  fs::create_directory(dir / "foreign");
  std::ofstream(dir / "foreign/file") << "text";
  fs::create_directory_symlink(dir / "foreign", dir / ".out.partial");
  EXPECT_THROW(FolderDraft(real_files(), dir / "out"), Error);
  EXPECT_TRUE(fs::exists(dir / "foreign/file"));
}

}  // namespace
}  // namespace tycho
