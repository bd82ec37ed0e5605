// Runs whose ranks share the parameters, each rank a thread.
#pragma once
#include <barrier>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/run/open_session.h"
#include "trainer/sharding/arena.h"

namespace tycho {
struct TestMesh {
  int64_t replicate = 1, shard = 1, tp = 1;
  bool sequence = true;
  int64_t cp = 1, pp = 1;
  bool ring = false;  // along cp
  int num_ranks() const { return static_cast<int>(pp * replicate * shard * tp * cp); }
  std::string name() const {
    return fmt::format("{}x{}x{}x{}{}{}", pp, replicate, shard, tp, sequence ? "" : "-whole-sequences",
                       cp > 1 ? fmt::format("-{}{}", ring ? "ring" : "cp", cp) : "");
  }
  void set(ParallelConfig& parallel) const {
    parallel.dp_replicate = replicate, parallel.dp_shard = shard, parallel.tp = tp;
    parallel.sequence_parallel = sequence, parallel.cp = cp, parallel.pp = pp;
    parallel.cp_attention = ring ? CpAttention::kRing : CpAttention::kGather;
  }
};
inline constexpr TestMesh kOneRank = {}, kTwo = {1, 2}, kFour = {1, 4}, kTwoByTwo = {2, 2}, kTp = {1, 1, 2};

class ShardedRun : public RunTest {
 protected:
  ShardedRun() {
    config_.global_batch = {8, DurationUnit::kSample};
    config_.micro_batch = Duration{1, DurationUnit::kSample};
    config_.max_duration = {20, DurationUnit::kBatch};
    config_.ckpt.every = {20, DurationUnit::kBatch};
    config_.log.every = {1, DurationUnit::kBatch};
    config_.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-6};
    config_.threads = 1;
    write_data(256, 16, 64);
  }

  WorldMaker make_world_ = open_world;  // of the next runs

  /// Runs `body` with an open run on every rank of a mesh, each a thread; what they threw.
  std::vector<Ended> on_mesh(const TestMesh& mesh, const std::function<void(TrainingSession&)>& body,
                             const std::string& until = "") {
    mesh.set(config_.parallel);
    return at_places(mesh.num_ranks(), [&](const RankInfo& place) {
      RunRequest one = request(until);
      one.place = place;
      const auto session = open_session(one, nullptr, stop_, make_world_);
      body(*session);
    });
  }
  void train(const TestMesh& mesh, const std::string& until = "") {
    expect_all_well(on_mesh(
        mesh, [](TrainingSession& session) { EXPECT_EQ(session.fit(), 0); }, until));
  }
  /// In a folder of its own.
  void train_in(const std::string& name, const TestMesh& mesh) {
    config_.run_dir = dir_ / name;
    std::filesystem::remove_all(run_dir());
    train(mesh);
  }

  /// Trains adapters of a model that one rank has trained.
  void use_adapters(const LoraConfig& lora) {
    config_.max_duration = {2, DurationUnit::kBatch};
    train_in("base", kOneRank);
    llama().weights = run_dir();
    config_.max_duration = {20, DurationUnit::kBatch};
    config_.model.lora = lora;
  }

  /// Losses of every step and the final weights of a run, against those of one rank.
  void expect_as_one_rank(const char* what, const std::vector<TestMesh>& meshes, double tolerance = 1e-6) {
    SCOPED_TRACE(what);
    train_in("one", kOneRank);
    const std::map<int64_t, double> wanted = losses();
    const auto weights = newest_tensors();
    ASSERT_EQ(wanted.size(), 20U);
    for (const TestMesh& mesh : meshes) {
      SCOPED_TRACE(mesh.name());
      train_in("several", mesh);
      const std::map<int64_t, double> given = losses();
      ASSERT_EQ(given.size(), wanted.size());
      EXPECT_NEAR(given.at(1) / wanted.at(1), 1, tolerance / 10);
      for (const auto& [step, loss] : wanted)
        EXPECT_NEAR(given.at(step) / loss, 1, tolerance) << "step " << step;
      expect_close(newest_tensors(), weights, tolerance);
    }
  }
  /// Muon iterates in bf16 where the machine has it: sums in another order may round to the next number.
  static double muon_tolerance() { return newton_schulz_dtype(at::kCPU) == at::kFloat ? 1e-5 : 3e-3; }
  /// Rounding differences of the first step grow; Adam divides by the root of squares that may be tiny.
  static void expect_close(const std::map<std::string, std::string>& given,
                           const std::map<std::string, std::string>& wanted, double tolerance) {
    ASSERT_EQ(given.size(), wanted.size());
    for (const auto& [name, bytes] : wanted) {
      ASSERT_EQ(given.at(name).size(), bytes.size()) << name;
      if (name.starts_with("optimizer.")) continue;
      const Tensor a = floats(given.at(name)), b = floats(bytes);
      EXPECT_LE((a - b).norm().item<double>(), 100 * tolerance * b.norm().item<double>()) << name;
    }
  }
  static Tensor floats(const std::string& bytes) {
    Tensor values = at::empty({static_cast<int64_t>(bytes.size() / 4)}, at::kFloat);
    std::memcpy(values.data_ptr(), bytes.data(), bytes.size());
    return values.to(at::kDouble);
  }
  LlamaConfig& llama() { return std::get<LlamaConfig>(config_.model.value); }
  /// Files of the newest checkpoint that hold tensors.
  int num_shards() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(find_checkpoint(run_dir()).path))
      count += entry.path().extension() == ".safetensors" ? 1 : 0;
    return count;
  }
  /// What a mesh that loads the checkpoint at `path` saves right away, in a folder of its own.
  std::map<std::string, std::string> saved_again(const std::string& path, const TestMesh& mesh) {
    config_.run_dir = dir_ / ("again-" + mesh.name());
    std::filesystem::remove_all(run_dir());
    config_.resume = path;
    expect_all_well(on_mesh(mesh, [](TrainingSession& session) { session.save(); }));
    config_.resume = "auto";
    return newest_tensors();
  }
  /// A checkpoint of any of the meshes, loaded on any other, has the same bits.
  void expect_moves(const char* what, const std::vector<TestMesh>& meshes) {
    SCOPED_TRACE(what);
    for (const TestMesh& mesh : meshes) {
      train_in("from-" + mesh.name(), mesh);
      const std::string path = find_checkpoint(run_dir()).path;
      const auto wanted = newest_tensors();
      for (const TestMesh& to : meshes)
        EXPECT_TRUE(saved_again(path, to) == wanted) << mesh.name() << " on " << to.name();
    }
  }
  /// What a mesh begins with, in a folder of its own.
  std::map<std::string, std::string> first_weights(const TestMesh& mesh) {
    config_.run_dir = dir_ / mesh.name();
    std::filesystem::remove_all(run_dir());
    expect_all_well(on_mesh(mesh, [](TrainingSession& session) { session.save(); }));
    return newest_tensors();
  }
  /// Bytes of the arenas of all ranks together, when they have trained.
  int64_t trained_arena_bytes(const TestMesh& mesh) {
    config_.run_dir = dir_ / "memory";
    std::filesystem::remove_all(run_dir());
    std::barrier all(mesh.num_ranks());
    const int64_t before = arena_bytes();
    int64_t taken = 0;
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      session.fit();
      all.arrive_and_wait();
      if (session.facts().rank == 0) taken = arena_bytes() - before;
      all.arrive_and_wait();
    }));
    return taken;
  }
};

}  // namespace tycho
