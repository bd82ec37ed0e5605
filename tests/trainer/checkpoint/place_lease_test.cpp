// One run at a time writes to a place of a store.
#include "trainer/checkpoint/place_lease.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/buckets/folder_bucket.h"

namespace tycho {
namespace {

class PlaceLeaseTest : public testing::Test {
 protected:
  std::shared_ptr<Bucket> bucket() const { return make_folder_bucket(dir_.path()); }
  std::unique_ptr<PlaceLease> take(double stale_s = 0.5, const std::string& predecessor = "") {
    PlaceLease::Settings settings{.stale_s = stale_s, .predecessor = predecessor};
    settings.waiting = [this](const std::string& text) { said_ = text; };
    return std::make_unique<PlaceLease>(bucket(), bucket(), settings);
  }
  /// Leaves the lease of a run on a machine that cannot be asked.
  void leave_lease_of(Owner owner, const std::string& folder_owner = "") {
    owner.boot_id = "of another machine";
    owner.host = "n3";
    const std::string folder = folder_owner.empty() ? "" : "run folder of " + folder_owner + "\n";
    bucket()->put("lease/000000004", owner_line(owner) + folder + "beat 3\n", PutWhen::kAlways);
  }
  std::vector<std::string> leases() const {
    std::vector<std::string> names;
    for (const StoredObject& object : bucket()->list("lease/")) names.push_back(object.name);
    return names;
  }

  TempDir dir_;
  std::string said_;
};

TEST_F(PlaceLeaseTest, ASecondRunIsRefusedUntilTheFirstEnds) {
  auto first = take();
  const Failure failure = failure_of([&] { take(); });
  EXPECT_EQ(failure.code, ExitCode::kFolderOwned);
  EXPECT_TRUE(failure.says(fmt::format("process {}", ::getpid()))) << failure.message;
  first->check();
  first.reset();
  take()->check();
  EXPECT_EQ(leases(), std::vector<std::string>{"lease/000000002"});
}

TEST_F(PlaceLeaseTest, ASilentOwnerIsReplacedAfterTheStaleTime) {
  leave_lease_of(this_process(4));
  const auto start = std::chrono::steady_clock::now();
  const auto lease = take(/*stale_s=*/0.4);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(400));
  EXPECT_NE(said_.find("on host n3"), std::string::npos) << said_;
  lease->check();
  EXPECT_EQ(leases(), std::vector<std::string>{"lease/000000005"});
}

TEST_F(PlaceLeaseTest, AnOwnerThatBeatsMeanwhileIsAlive) {
  leave_lease_of(this_process(4));
  std::jthread beats([&](const std::stop_token& stop) {
    for (int i = 4; !stop.stop_requested(); ++i) {
      Owner owner = this_process(4);
      owner.uuid = "00000000000000000000000000000000";
      owner.boot_id = "of another machine";
      bucket()->put("lease/000000004", owner_line(owner) + fmt::format("beat {}\n", i), PutWhen::kAlways);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_EQ(failure_of([&] { take(/*stale_s=*/30); }).code, ExitCode::kFolderOwned);
}

TEST_F(PlaceLeaseTest, AProcessThatIsGoneIsReplacedAtOnce) {
  Owner gone = this_process(1);
  gone.start_ticks += 1;  // somebody had this number before
  bucket()->put("lease/000000001", owner_line(gone) + "beat 3\n", PutWhen::kAlways);
  take(/*stale_s=*/1000)->check();
}

TEST_F(PlaceLeaseTest, TheOwnerOfTheRunFolderReplacesTheOneBeforeAtOnce) {
  leave_lease_of(this_process(4), "0123456789abcdef");
  take(/*stale_s=*/1000, "0123456789abcdef")->check();
  leave_lease_of(this_process(4));
}

TEST_F(PlaceLeaseTest, ALaterStartOfTheSameSlurmJobReplacesTheEarlierAtOnce) {
  Owner owner = this_process(4);
  owner.job = "99";
  leave_lease_of(owner);
  ::setenv("SLURM_JOB_ID", "99", 1);
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  take(/*stale_s=*/1000)->check();
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST_F(PlaceLeaseTest, WhoWasReplacedNotices) {
  const auto lease = take();
  Owner other = this_process(9);
  bucket()->put("lease/000000009", owner_line(other) + "beat 0\n", PutWhen::kAlways);
  const Failure failure = failure_of([&] { lease->check(); });
  EXPECT_EQ(failure.code, ExitCode::kFolderOwned);
  EXPECT_TRUE(failure.says("taken over by process")) << failure.message;
}

TEST_F(PlaceLeaseTest, OfManyThatTakeAFreePlaceOneSucceeds) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> num_owners = 0, num_refused = 0, num_done = 0;
    std::vector<std::jthread> runs;
    for (int i = 0; i < 8; ++i)
      runs.emplace_back([&] {
        std::unique_ptr<PlaceLease> lease;
        const Failure failure = failure_of([&] {
          lease = std::make_unique<PlaceLease>(bucket(), bucket(), PlaceLease::Settings{.stale_s = 1000});
        });
        (lease ? num_owners : num_refused) += 1;
        EXPECT_EQ(failure.code, lease ? ExitCode::kOk : ExitCode::kFolderOwned) << failure.message;
        ++num_done;
        while (num_done < 8) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    runs.clear();
    EXPECT_EQ(num_owners, 1);
  }
}

}  // namespace
}  // namespace tycho
