// Owners that live, left, were killed, or are on another machine, as seen from outside.
#include "trainer/lock/owner_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/file_ops.h"
#include "trainer/lock/owner.h"

namespace tycho {
namespace {

constexpr double kNever_s = 1e6, kAtOnce_s = 0;

Owner far_owner() {
  Owner owner = this_process(1);
  owner.host = "n3";
  owner.boot_id = "another boot";
  owner.pid = 4711;
  return owner;
}

void append_to_lock(const TempDir& dir, const std::string& text) {
  std::ofstream(dir / "LOCK", std::ios::binary | std::ios::app) << text;
}

TEST(OwnerWatch, SeesNoOwnerWithoutALockOrInADamagedOne) {
  const TempDir dir;
  OwnerWatch watch(dir.path(), kAtOnce_s);
  EXPECT_FALSE(watch.look());
  append_to_lock(dir, "{\"uuid\"");
  EXPECT_FALSE(watch.look());
  EXPECT_FALSE(watch.look());
}

TEST(OwnerWatch, AnOwnerOnThisMachineIsAliveHoweverSilentItIs) {
  const TempDir dir;
  const RunLock lock(real_files(), dir.path());
  OwnerWatch watch(dir.path(), kAtOnce_s);
  EXPECT_FALSE(watch.look());
  EXPECT_FALSE(watch.look());
}

TEST(OwnerWatch, NamesAnOwnerThatWasKilledAndWaitsUntilItCounts) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(real_files(), dir.path());
    ::_exit(0);  // without destructors, as killed
  }
  ::waitpid(child, nullptr, 0);
  OwnerWatch patient(dir.path(), kNever_s), watch(dir.path(), kAtOnce_s);
  for (int i = 0; i < 2; ++i) {
    const auto absence = patient.look();
    ASSERT_TRUE(absence);
    EXPECT_FALSE(absence->is_final);
    EXPECT_EQ(absence->owner.find("process " + std::to_string(child) + " on host "), 0u) << absence->owner;
  }
  ASSERT_TRUE(watch.look());
  EXPECT_TRUE(watch.look()->is_final);
  const RunLock next(real_files(), dir.path());  // the run was started again
  EXPECT_FALSE(watch.look());
  EXPECT_FALSE(patient.look());
}

TEST(OwnerWatch, AnOwnerThatLeftIsAbsent) {
  const TempDir dir;
  { const RunLock lock(real_files(), dir.path()); }
  OwnerWatch watch(dir.path(), kNever_s);
  ASSERT_TRUE(watch.look());
  EXPECT_FALSE(watch.look()->is_final);
}

TEST(OwnerWatch, AnOwnerElsewhereLivesWhileItsLockGrows) {
  const TempDir dir;
  append_to_lock(dir, owner_line(far_owner()));
  OwnerWatch patient(dir.path(), kNever_s);
  EXPECT_FALSE(patient.look());
  append_to_lock(dir, ".");
  EXPECT_FALSE(patient.look());
  EXPECT_FALSE(patient.look());
  constexpr double kSilence_s = 0.05;
  OwnerWatch watch(dir.path(), kSilence_s);
  EXPECT_FALSE(watch.look());
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSilence_s));
  append_to_lock(dir, ".");
  EXPECT_FALSE(watch.look()) << "a heartbeat begins the silence anew";
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSilence_s));
  const auto absence = watch.look();
  ASSERT_TRUE(absence);
  EXPECT_TRUE(absence->is_final);
  EXPECT_EQ(absence->owner, "process 4711 on host n3");
}

TEST(OwnerWatch, WaitingEndsWhenAnOwnerElsewhereIsSilentAndSaysSoOnce) {
  const TempDir dir;
  int num_told = 0;
  const auto told = [&](const std::string&) { ++num_told; };
  wait_until_unowned(dir.path(), told, 0.2);  // nobody
  append_to_lock(dir, owner_line(far_owner()));
  wait_until_unowned(dir.path(), told, 0.2);
  EXPECT_EQ(num_told, 1);
  append_to_lock(dir, std::string(RunLock::kReleased));
  wait_until_unowned(dir.path(), told, kNever_s);
  EXPECT_EQ(num_told, 1);
}

TEST(OwnerWatch, WaitingFailsWhileTheOwnerLives) {
  const TempDir here, elsewhere;
  const RunLock lock(real_files(), here.path());
  append_to_lock(elsewhere, owner_line(far_owner()));
  for (const TempDir* dir : {&here, &elsewhere}) {
    try {
      // Beats as soon as the owner elsewhere is watched.
      wait_until_unowned(
          dir->path(), [&](const std::string&) { append_to_lock(*dir, "."); }, 60);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kFolderOwned);
      EXPECT_NE(std::string(error.what()).find("owner is alive"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tycho
