// Runs whose checkpoints are in a store: a machine, its disk and its mesh may change.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/trainer/run/one_callback.h"
#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/buckets/folder_bucket.h"
#include "trainer/checkpoint/remote_checkpoints.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class RemoteRun : public ShardedRun {
 protected:
  RemoteRun() {
    config_.ckpt.remote = place();
    config_.ckpt.keep = 3;
    config_.ckpt.every = {2, DurationUnit::kBatch};
    config_.max_duration = {8, DurationUnit::kBatch};
  }
  std::string place() const { return "file://" + store(); }
  std::string store() const { return dir_ / "store"; }
  std::vector<int64_t> steps_there() {
    std::vector<int64_t> steps;
    for (const CheckpointInfo& info : list_remote_checkpoints(place())) {
      CheckpointReader(info).verify();
      steps.push_back(info.step);
    }
    return steps;
  }
  std::vector<std::string> texts(const std::string& kind) const {
    std::vector<std::string> found;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == kind) found.push_back(event.at("text"));
    return found;
  }
};

TEST_F(RemoteRun, ANewMachineGoesOnFromTheStoreBitForBit) {
  config_.ckpt.remote.clear();
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const auto whole_losses = losses();
  fs::remove_all(run_dir());
  config_.ckpt.remote = place();
  for (const char* until : {"3ba", "6ba", ""}) {
    fs::remove_all(run_dir());  // its disk is empty
    ASSERT_EQ(run(until), 0);
  }
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(tensors_of(place()), whole);
  for (const auto& [step, loss] : losses()) EXPECT_EQ(loss, whole_losses.at(step)) << step;
  EXPECT_EQ(losses().begin()->first, 7) << "steps 1 to 6 were not trained again";
  EXPECT_EQ(steps_there(), (std::vector<int64_t>{8, 6, 4})) << "ckpt.keep holds in the store";
  EXPECT_NE(texts("resume").at(0).find("resumed from step 6 (file://"), std::string::npos);
  EXPECT_NE(texts("upload").back().find("step 8 uploaded to file://"), std::string::npos);
}

TEST_F(RemoteRun, AnOlderFolderGivesWayToTheStore) {
  ASSERT_EQ(run("4ba"), 0);
  fs::copy(run_dir(), dir_ / "old", fs::copy_options::recursive);
  ASSERT_EQ(run("6ba"), 0);
  fs::remove_all(run_dir());
  fs::copy(dir_ / "old", run_dir(), fs::copy_options::recursive);
  ASSERT_EQ(run(), 0);
  EXPECT_NE(texts("resume").back().find("resumed from step 6 (file://"), std::string::npos);
}

TEST_F(RemoteRun, ResumesFromThePlaceOfAnotherRun) {
  ASSERT_EQ(run("4ba"), 0);
  config_.ckpt.remote.clear();
  config_.run_dir = dir_ / "another";
  config_.resume = place();
  ASSERT_EQ(run(), 0);
  EXPECT_NE(texts("resume").at(0).find("resumed from step 4 (file://"), std::string::npos);
}

TEST_F(RemoteRun, AFolderThatWasNeverUploadedIsUploadedByTheNextStart) {
  config_.ckpt.remote.clear();
  ASSERT_EQ(run("4ba"), 0);
  config_.ckpt.remote = place();
  ASSERT_EQ(run("5ba"), 0);
  EXPECT_EQ(steps_there(), (std::vector<int64_t>{5, 4, 2}));
}

TEST_F(RemoteRun, ASecondJobOnThePlaceEndsWith13) {
  std::string refused;
  OneCallback other{{Event::kBatchEnd}, [&](const EventInfo& info, CallbackPort&, Json&) {
                      if (info.metrics.step != 2) return;
                      const std::string own = config_.run_dir;
                      config_.run_dir = dir_ / "elsewhere";
                      callbacks_ = nullptr;
                      const Error error = run_error();
                      EXPECT_EQ(error.code(), ExitCode::kFolderOwned);
                      refused = error.what();
                      config_.run_dir = own;
                    }};
  callbacks_ = &other;
  ASSERT_EQ(run(), 0);
  EXPECT_NE(refused.find("belongs to a run that is alive"), std::string::npos) << refused;
  callbacks_ = nullptr;
  config_.run_dir = dir_ / "elsewhere";
  EXPECT_EQ(run(), 0) << "the first one has ended";
}

TEST_F(RemoteRun, AStoreThatCannotBeWrittenNeverEndsARun) {
  OneCallback lose{{Event::kBatchEnd}, [&](const EventInfo& info, CallbackPort&, Json&) {
                     if (info.metrics.step != 1) return;
                     fs::remove_all(store() + "/checkpoints");
                     real_files().create(store() + "/checkpoints")->close();  // no folder can be made there
                   }};
  config_.ckpt.keep = 1;
  callbacks_ = &lose;
  std::jthread impatient([&] {  // Ctrl-C while the end waits
    for (int i = 0; i < 60'000 && !fs::exists(run_dir() + "/checkpoints"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto saved_last = [&] {
      for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
        if (info.step == 8) return true;
      return false;
    };
    for (int i = 0; i < 60'000 && !saved_last(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop_ = SIGINT;
  });
  EXPECT_EQ(run(), 0);
  impatient.join();
  EXPECT_EQ(list_checkpoints(run_dir() + "/checkpoints").size(), 4U) << "ckpt.keep = 1, but none is uploaded";
  const std::vector<std::string> said = texts("warning");
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.back().find("not everything is uploaded, because the wait was stopped: 4 checkpoints"),
            std::string::npos)
      << said.back();
  // The next start, when the store is there again.
  stop_ = 0;
  callbacks_ = nullptr;
  fs::remove(store() + "/checkpoints");
  config_.max_duration = {9, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(steps_there(), (std::vector<int64_t>{9, 8})) << "the one it resumed from stays for now";
}

TEST_F(RemoteRun, RanksUploadWhatTheyWroteAndAnyMeshReadsIt) {
  config_.ckpt.keep = 0;
  config_.max_duration = {2, DurationUnit::kBatch};
  std::map<std::string, std::string> before;
  int64_t step = 0;
  for (const TestMesh& mesh : {kTwo, kFour, kOneRank, kTwoByTwo, kTp}) {
    SCOPED_TRACE(mesh.name());
    fs::remove_all(run_dir());
    step += 2;
    config_.max_duration = {static_cast<double>(step), DurationUnit::kBatch};
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      if (step > 2) {
        const std::string again = session.save().path;
        if (session.facts().rank == 0) {
          EXPECT_TRUE(tensors_of(again) == before) << "read other bits";
        }
      }
      EXPECT_EQ(session.fit(), 0);
    }));
    before = newest_tensors();
    EXPECT_TRUE(tensors_of(place()) == before) << "stored other bits";
  }
}

}  // namespace
}  // namespace tycho
