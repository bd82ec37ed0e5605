// Checkpoints of twelve meshes, each loaded by all of them: parameters and optimizer state bit for bit.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/trainer/run/sharded_fixture.h"

namespace tycho {
namespace {

/// All axes, alone and together. Three and five ranks do not divide the parameters, and five leave ranks
/// without a part of the smallest units.
constexpr std::array<TestMesh, 12> kMeshes = {{{},
                                               {.replicate = 2},
                                               {.shard = 3},
                                               {.shard = 5},
                                               {.tp = 4, .sequence = false},
                                               {.cp = 4},
                                               {.pp = 3},
                                               {.replicate = 2, .shard = 2, .tp = 2},
                                               {.shard = 2, .tp = 2, .cp = 2},
                                               {.shard = 2, .tp = 2, .pp = 2},
                                               {.replicate = 3, .cp = 2},
                                               {.tp = 2, .cp = 2, .pp = 2}}};

class MeshCheckpoints : public ShardedRun {
 protected:
  MeshCheckpoints() {
    config_.global_batch = {60, DurationUnit::kSample};
    config_.micro_batch = Duration{5, DurationUnit::kSample};
    config_.max_duration = {1, DurationUnit::kBatch};
    config_.scheduler.value = ConstantConfig{};
    config_.ckpt.keep = 0;
    // Sizes that do not divide: of shards, of parts along tp, of stages.
    llama().layers = 5, llama().heads = 4, llama().kv_heads = 2, llama().width = 40, llama().ffn_width = 37;
    llama().vocab_size = 67;
  }

  struct Saved {
    std::string path;
    std::map<std::string, std::string> tensors;
  };
  /// After a step on the mesh, in a folder of its own; every one from another seed.
  Saved saved_by(const TestMesh& mesh, int64_t seed) {
    config_.seed = seed;
    train_in("from-" + mesh.name(), mesh);
    return {find_checkpoint(run_dir()).path, newest_tensors()};
  }
  /// One run of the mesh that loads them all, one after the other, and saves what it has then. All are of
  /// step 1: only the folder that save() returns tells its checkpoint from the others. Rank 0 reads it.
  void expect_loads_all(const TestMesh& mesh, const std::vector<Saved>& all) {
    SCOPED_TRACE("loaded by " + mesh.name());
    config_.run_dir = dir_ / ("to-" + mesh.name());
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      for (const Saved& one : all) {
        session.load(one.path);
        const std::string again = session.save().path;
        if (session.facts().rank != 0) continue;
        EXPECT_TRUE(tensors_of(again) == one.tensors) << one.path;  // bytes are not text for people
      }
    }));
  }
};

TEST_F(MeshCheckpoints, OfAnyMeshLoadOnAnyOtherBitForBit) {
  std::vector<Saved> all;
  for (const TestMesh& mesh : kMeshes) all.push_back(saved_by(mesh, std::ssize(all) + 1));
  EXPECT_EQ(all.front().tensors.size(), all.back().tensors.size());
  EXPECT_FALSE(all.front().tensors == all.back().tensors) << "this test could not fail";
  for (const TestMesh& mesh : kMeshes) expect_loads_all(mesh, all);
}

}  // namespace
}  // namespace tycho
