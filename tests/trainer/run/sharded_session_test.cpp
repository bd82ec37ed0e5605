// What looks at a model whose parameters are shared: prompts, callbacks, evaluation, text, exports, the
// memory that it takes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tests/trainer/callbacks/fake_callback.h"
#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/base/field_types.h"
#include "trainer/base/json.h"
#include "trainer/huggingface/hf_export.h"
#include "trainer/plan/plan.h"
#include "trainer/run/evaluate_checkpoint.h"
#include "trainer/session/callback_source.h"

namespace tycho {
namespace {

/// Callbacks of one rank, which look at its session.
class Looking final : public CallbackSource {
 public:
  using Look = std::function<void(TrainingSession& session, const EventInfo& info)>;
  Looking(CallbackKind kind, std::set<Event> events, Look look)
      : kind_(kind), events_(std::move(events)), look_(std::move(look)) {}
  std::vector<Callback> callbacks() override {
    std::vector<Callback> all;
    all.push_back(fake_callback(
        "look", events_, [this](const EventInfo& info, CallbackPort&, Json&) { look_(*session_, info); },
        CallbackOptions{.on_error = OnError::kStop}, nullptr, kind_));
    return all;
  }
  std::unique_ptr<ScheduleCode> schedule() override { return nullptr; }
  void set_session(TrainingSession* session) override { session_ = session; }
  std::string evaluate(const std::string&, bool, const EventInfo&, CallbackPort&) override { return ""; }

 private:
  CallbackKind kind_;
  std::set<Event> events_;
  Look look_;
  TrainingSession* session_ = nullptr;
};

class ShardedSession : public ShardedRun {
 protected:
  /// Trains two steps with a callback on every rank of its own; what each rank threw.
  std::vector<Ended> look(const TestMesh& mesh, CallbackKind kind, const Looking::Look& what) {
    config_.max_duration = {2, DurationUnit::kBatch};
    config_.scheduler.value = ConstantConfig{};
    config_.ckpt.every = {2, DurationUnit::kBatch};
    mesh.set(config_.parallel);
    config_.run_dir = dir_ / "look";
    std::filesystem::remove_all(run_dir());
    return at_places(mesh.num_ranks(), [&](const RankInfo& place) {
      Looking source(kind, {Event::kAfterForward, Event::kGradsReady, Event::kBatchEnd}, what);
      RunRequest one = request();
      one.place = place, one.callbacks = &source;
      open_session(one, nullptr, stop_)->fit();
    });
  }
};

/// Norms of all weights and gradients, logits and text, by where and when they were looked at.
using Seen = std::map<std::string, std::vector<double>>;

void look_at_all(TrainingSession& session, const EventInfo& info, Seen& seen) {
  const std::string when = fmt::format("{} {} ", info.metrics.step, enum_name(info.event));
  for (size_t i = 0; i < session.params().size(); ++i) {
    const auto weight = session.weight(static_cast<int64_t>(i));
    EXPECT_EQ(weight->shape(), session.params()[i].shape);
    seen[when + session.params()[i].name] = weight->values();
    if (info.event != Event::kGradsReady) continue;
    seen[when + "gradient of " + session.params()[i].name] = session.grad(static_cast<int64_t>(i))->values();
  }
  if (info.event != Event::kBatchEnd) return;
  seen[when + "logits"] = session.logits({1, 2, 3}, false)->values();
  for (const auto& stream : session.activations({4, 5}))
    seen[when + "streams"].push_back(stream->stats().norm);
  const auto tokens = session.generate_tokens({1, 2, 3}, {.max_tokens = 4, .temperature = 0});
  seen[when + "tokens"].assign(tokens->begin(), tokens->end());
}

TEST_F(ShardedSession, CallbacksOfAllRanksSeeWholeTensors) {
  Seen wanted;
  expect_all_well(
      look(kOneRank, CallbackKind::kEverywhere,
           [&](TrainingSession& session, const EventInfo& info) { look_at_all(session, info, wanted); }));
  EXPECT_GT(wanted.size(), 50U);
  for (const TestMesh& mesh : {kTwo, kTwoByTwo, kTp, TestMesh{1, 2, 2}, TestMesh{1, 1, 4, false},
                               TestMesh{.cp = 2}, TestMesh{.shard = 2, .tp = 2, .cp = 2}, TestMesh{.pp = 2},
                               TestMesh{.cp = 2, .pp = 2}, TestMesh{.replicate = 2, .tp = 2, .pp = 2}}) {
    SCOPED_TRACE(mesh.name());
    std::mutex mutex;
    std::map<int, Seen> of_ranks;
    expect_all_well(
        look(mesh, CallbackKind::kEverywhere, [&](TrainingSession& session, const EventInfo& info) {
          Seen seen;
          look_at_all(session, info, seen);
          const std::lock_guard lock(mutex);
          of_ranks[session.facts().rank].merge(seen);
        }));
    for (const auto& [rank, seen] : of_ranks) {
      ASSERT_EQ(seen.size(), wanted.size());
      for (const auto& [what, values] : wanted) {
        const std::vector<double>& given = seen.at(what);
        ASSERT_EQ(given.size(), values.size()) << what;
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_NEAR(given[i], values[i], 1e-5 + 1e-4 * std::abs(values[i])) << what << " on rank " << rank;
      }
    }
  }
}

// Stages announce after_forward when backward is done, too: the streams must still be those of the forward
// pass.
TEST_F(ShardedSession, StagesTellTheStatisticsOfTheirBlocks) {
  llama().layers = 4;
  const auto told_by = [&](const TestMesh& mesh) {
    std::mutex mutex;
    std::map<int, Json> of_ranks;  // of the second step
    expect_all_well(
        look(mesh, CallbackKind::kEverywhere, [&](TrainingSession& session, const EventInfo& info) {
          if (info.event != Event::kAfterForward) return;
          const std::lock_guard lock(mutex);
          of_ranks[session.facts().rank] = info.facts.at("activations");
        }));
    return of_ranks;
  };
  const Json wanted = told_by(kOneRank).at(0);
  ASSERT_EQ(wanted.size(), 5U);
  std::set<size_t> told;
  for (const auto& [rank, given] : told_by({.pp = 2})) {
    ASSERT_EQ(given.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (given[i].empty()) continue;
      told.insert(i);
      for (const char* what : {"rms", "max"}) {
        const double value = wanted[i].at(what);
        EXPECT_NEAR(given[i].at(what).get<double>(), value, 1e-6 * value) << what << " before layer " << i;
      }
    }
  }
  EXPECT_EQ(told.size(), wanted.size());
}

TEST_F(ShardedSession, CallbacksOfOneRankAreToldToRunOnAll) {
  const std::string advice =
      "share the parameters (parallel.dp_shard, cp, tp or pp), but this code runs on one rank: use "
      "t.everywhere";
  const auto expect_told = [&](const char* what, const std::function<void(TrainingSession&)>& body) {
    for (const auto& [kind, mesh] :
         {std::pair(CallbackKind::kObserve, kTwo), std::pair(CallbackKind::kControl, kTp)}) {
      const std::vector<Ended> ended =
          look(mesh, kind, [&](TrainingSession& session, const EventInfo&) { body(session); });
      for (const Ended& one : ended) {
        EXPECT_NE(one.what.find(advice), std::string::npos) << what << one.what;
        EXPECT_EQ(one.code, ExitCode::kRecipe);
      }
    }
  };
  expect_told("weight", [](TrainingSession& session) { session.weight(0); });
  expect_told("gradient", [](TrainingSession& session) { session.grad(0); });
  expect_told("logits", [](TrainingSession& session) { session.logits({1}, false); });
  expect_told("text", [](TrainingSession& session) { session.generate_tokens({1}, {.max_tokens = 1}); });
}

TEST_F(ShardedSession, ALookThatARankDoesNotTakeIsAnErrorAndNoHang) {
  const std::vector<Ended> ended =
      look(kTwo, CallbackKind::kEverywhere, [&](TrainingSession& session, const EventInfo&) {
        if (session.facts().rank == 0) session.weight(1);
      });
  for (const Ended& one : ended)
    EXPECT_NE(one.what.find("has left the callback"), std::string::npos) << one.what;
}

TEST_F(ShardedSession, EvaluatesAsOneRankDoes) {
  write_data(37, 16, 64, "val");
  MdsConfig val;
  val.local_dir = dir_ / "data", val.split = "val";
  config_.eval_data["val"].value = val;
  config_.eval.every = Duration{10, DurationUnit::kBatch};
  const auto evaluations = [&](const TestMesh& mesh) {
    train_in("evaluated", mesh);
    std::vector<double> all;
    for (const Json& line : lines("metrics.jsonl"))
      if (line.contains("eval.loss")) all.push_back(line.at("eval.loss"));
    return all;
  };
  const std::vector<double> wanted = evaluations(kOneRank);
  ASSERT_EQ(wanted.size(), 2U);
  for (const TestMesh& mesh : {kTwo, kTwoByTwo, kTp, TestMesh{2, 1, 2}}) {
    const std::vector<double> given = evaluations(mesh);
    ASSERT_EQ(given.size(), 2U);
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(given[i] / wanted[i], 1, 1e-6);
    // From the checkpoint, on one process.
    const auto result =
        evaluate_checkpoint(TrainedSource(run_dir()), std::nullopt, std::nullopt, at::kCPU, stop_);
    EXPECT_NEAR(result->at("val").loss / wanted[1], 1, 1e-6);
  }
}

TEST_F(ShardedSession, ExportsWhatOneRankWouldExport) {
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  config_.ckpt.every = {2, DurationUnit::kBatch};
  for (const TestMesh& mesh : {kFour, TestMesh{1, 2, 2}}) {
    train_in("sharded-" + mesh.name(), mesh);
    const std::string sharded = find_checkpoint(run_dir()).path;
    saved_again(sharded, kOneRank);
    const auto exported = [&](const std::string& checkpoint, const std::string& to) {
      const ExportReport report =
          export_hf(real_files(), CheckpointReader(find_checkpoint(checkpoint)), to, {});
      std::map<std::string, std::string> files;
      for (const std::string& name : report.shards) files[name] = read_file(to + "/" + name);
      return files;
    };
    EXPECT_EQ(exported(sharded, dir_ / ("a" + mesh.name())), exported(run_dir(), dir_ / ("b" + mesh.name())));
  }
}

TEST_F(ShardedSession, TakesTheMemoryThatWasPlanned) {
  llama().width = 256, llama().layers = 5, llama().heads = 4, llama().ffn_width = 512,
  llama().vocab_size = 1003;
  config_.seq_len = 64;
  write_data(64, 64, 64);
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  config_.ckpt.every = {1, DurationUnit::kBatch};
  const auto expect_agreement = [&](const TestMesh& mesh) {
    SCOPED_TRACE(mesh.name());
    mesh.set(config_.parallel);
    const Plan plan = plan_memory(config_, {.num_ranks = mesh.num_ranks()});
    const auto taken = static_cast<double>(trained_arena_bytes(mesh));
    // Copies beside the first write no checkpoints.
    const double planned = static_cast<double>(plan.training_bytes) * mesh.num_ranks() +
                           static_cast<double>(plan.memory_bytes - plan.training_bytes) *
                               static_cast<double>(mesh.shard * mesh.tp);
    EXPECT_NEAR(taken / planned, 1, 0.05) << memory_table(plan);
    return static_cast<double>(plan.memory_bytes);
  };
  const double whole = expect_agreement(kOneRank), half = expect_agreement(kTwo);
  EXPECT_LT(half, 0.75 * whole);
  EXPECT_LT(expect_agreement(kFour), 0.6 * whole);
  expect_agreement(kTwoByTwo);
  EXPECT_LT(expect_agreement(kTp), 0.6 * whole);
  EXPECT_LT(expect_agreement({1, 1, 2, false}), 0.75 * whole);
  expect_agreement({1, 2, 2});
  config_.precision = Precision::kBf16, llama().tied = false;
  expect_agreement(kTwo);
  config_.parallel.reshard_after_forward = false, config_.parallel.keep_gradients = true;
  config_.param_groups = {{.match = "layers\\.[01]\\.", .freeze = true}};
  expect_agreement(kFour);
}

TEST_F(ShardedSession, ParanoidRunsCompareCopiesPartByPart) {
  config_.max_duration = {3, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  config_.ckpt.every = {3, DurationUnit::kBatch};
  for (const TestMesh& mesh : {kTwoByTwo, TestMesh{2, 1, 2}}) {
    mesh.set(config_.parallel);
    config_.run_dir = dir_ / mesh.name();
    expect_all_well(at_places(4, [&](const RankInfo& place) {
      RunRequest one = request();
      one.place = place, one.paranoid = true;
      EXPECT_EQ(open_session(one, nullptr, stop_)->fit(), 0);
    }));
  }
}

}  // namespace
}  // namespace tycho
