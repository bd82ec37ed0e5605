// Which checkpoint a run begins from: the newest that can be read whole, and what is said of the others.
#include "trainer/saving/resume.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "tests/trainer/aten.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/recipe/config_io.h"
#include "trainer/saving/unit_tensors.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Keeps what it is told.
struct Events : Reporter {
  void event(const std::string& kind, const std::string& text, const Json&) override {
    lines.push_back(kind + ": " + text);
  }
  std::vector<std::string> lines;
};

/// Bytes that this process has asked the system for, from files and pipes alike.
int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t value = -1;
  io >> name >> value;
  return value;
}

/// Two units and their optimizer, whose every number follows from a step.
struct Model {
  explicit Model(at::ScalarType dtype, int64_t rows = 900)
      : units({unit("first", rows), unit("second", 1100)}, dtype, at::kCPU, UnitUse::kTrain),
        optimizer(make_optimizer(OptimizerConfig{AdamWConfig{}}, units.owned())) {
    for (const FlatState& state : flat_states(units.owned(), optimizer.get()))
      state.flat.fill_(std::numeric_limits<float>::quiet_NaN());
  }
  static UnitSpec unit(const std::string& name, int64_t rows) {
    UnitSpec spec{.name = name};
    spec.params = {{name + ".a", {rows, 700}}, {name + ".b", {7}}, {name + ".c", {300, 1001}}};
    return spec;
  }
  static at::Tensor expected(const FlatState& state, size_t index, int64_t step) {
    return at::arange(state.flat.numel(), at::kFloat) +
           static_cast<double>(step * 100 + static_cast<int64_t>(index));
  }
  void fill(int64_t step) {
    const std::vector<FlatState> states = flat_states(units.owned(), optimizer.get());
    for (size_t i = 0; i < states.size(); ++i) states[i].flat.copy_(expected(states[i], i, step));
  }
  bool is(int64_t step) {
    const std::vector<FlatState> states = flat_states(units.owned(), optimizer.get());
    bool same = true;
    for (size_t i = 0; i < states.size(); ++i)
      same &= at::equal(states[i].flat, expected(states[i], i, step));
    for (const OwnedRange& range : units.owned())
      same &= at::equal(range.params, range.master.to(range.params.scalar_type()));
    return same;
  }
  std::vector<TensorBytes> tensors() {
    std::vector<TensorBytes> all;
    for (const FlatState& state : flat_states(units.owned(), optimizer.get()))
      for (TensorBytes& tensor : unit_tensor_bytes(state, state.flat)) all.push_back(std::move(tensor));
    return all;
  }

  LocalUnits units;
  std::unique_ptr<Optimizer> optimizer;
};

class LoadNewestTest : public testing::Test {
 protected:
  std::string checkpoints() const { return dir_ / "checkpoints"; }
  CheckpointInfo save(int64_t step, Model& model) {
    CheckpointStore store(real_files(), checkpoints(), 0, 1);
    CheckpointMeta meta;
    meta.step = step;
    return store.save(meta, model.tensors());
  }
  CheckpointInfo save(int64_t step) {
    Model model(at::kFloat);
    model.fill(step);
    return save(step, model);
  }
  static std::string shard(const CheckpointInfo& info) { return info.path + "/rank-00000.safetensors"; }
  /// Turns over one bit, `from_end` bytes before the end of the file.
  static void flip_bit(const std::string& path, int64_t from_end) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-from_end, std::ios::end);
    const int byte = file.get();
    file.seekp(-from_end, std::ios::end);
    file.put(static_cast<char>(byte ^ 16));
  }
  CheckpointInfo load(Model& model) {
    return load_newest(list_checkpoints(checkpoints()), model.units.owned(), *model.optimizer, *alone_,
                       events_);
  }
  Error load_error(Model& model) {
    try {
      load(model);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was wrong";
    return Error("");
  }

  TempDir dir_;
  Events events_;
  const std::unique_ptr<Communicator> alone_ = make_world_of_one();
};

class LoadNewestByDtypeTest : public LoadNewestTest, public testing::WithParamInterface<at::ScalarType> {};

TrainConfig resuming(const std::string& resume) {
  TrainConfig config;
  config.resume = resume;
  return config;
}

std::string candidates_error(const std::string& run_dir, const std::string& resume = "auto") {
  try {
    resume_candidates(resuming(resume), run_dir);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    return error.what();
  }
  return "";
}

TEST_F(LoadNewestTest, ACheckpointThatVanishedIsAnErrorAndNotAFreshStart) {
  EXPECT_EQ(candidates_error(dir_.path()), "");
  const CheckpointInfo saved = save(300);
  EXPECT_EQ(candidates_error(dir_.path()), "");
  fs::remove_all(saved.path);
  const std::string by_hint = candidates_error(dir_.path());
  EXPECT_NE(by_hint.find("latest names step-000000300."), std::string::npos) << by_hint;
  EXPECT_NE(by_hint.find("start over with resume=none"), std::string::npos) << by_hint;
  EXPECT_EQ(candidates_error(dir_.path(), "none"), "");
  std::ofstream(checkpoints() + "/latest") << "\x1b[2J";
  EXPECT_NE(candidates_error(dir_.path()).find("latest names one:"), std::string::npos);
}

TEST_F(LoadNewestTest, EventsTellOfACheckpointUntilTheRunStartsOverOnPurpose) {
  const auto add = [&](const std::string& line) {
    std::ofstream(dir_ / "events.jsonl", std::ios::app) << line << "\n";
  };
  add(R"({"kind":"run_start","text":"","facts":{"first_step":0}})");
  add(R"(not JSON "checkpoint")");
  add(R"({"kind":["checkpoint"],"text":7})");
  add(R"({"kind":"checkpoint"})");
  add(R"({"kind":"error","text":"step 100 was not saved: no checkpoint"})");
  EXPECT_EQ(candidates_error(dir_.path()), "");
  add(R"({"kind":"checkpoint","text":"step 300 saved, 1.5 GB in 2.1 s"})");
  add(R"({"kind":"run_start","text":"","facts":{"first_step":300}})");
  const std::string by_event = candidates_error(dir_.path());
  EXPECT_NE(by_event.find("events.jsonl says \"step 300 saved, 1.5 GB in 2.1 s\""), std::string::npos)
      << by_event;
  EXPECT_EQ(candidates_error(dir_.path(), "none"), "");
  add(R"({"kind":"run_start","text":"","facts":{"first_step":0}})");
  EXPECT_EQ(candidates_error(dir_.path()), "");
}

TEST_P(LoadNewestByDtypeTest, TakesTheNewest) {
  save(1), save(2);
  Model model(GetParam());
  EXPECT_EQ(load(model).step, 2);
  EXPECT_TRUE(model.is(2));
  EXPECT_TRUE(events_.lines.empty());
}

TEST_P(LoadNewestByDtypeTest, ABitFlippedInTheLastTensorGoesBackAndLeavesNothingOfTheNewest) {
  const CheckpointInfo older = save(1), newest = save(2);
  flip_bit(shard(newest), 1);
  Model model(GetParam());
  const CheckpointInfo loaded = load(model);
  EXPECT_EQ(loaded.uuid, older.uuid);
  EXPECT_TRUE(model.is(1));
  ASSERT_EQ(events_.lines.size(), 1u);
  EXPECT_EQ(events_.lines[0].rfind("warning: step 2 cannot be read, using an older one: ", 0), 0u)
      << events_.lines[0];
  EXPECT_NE(events_.lines[0].find(shard(newest) + " is damaged"), std::string::npos) << events_.lines[0];
}

TEST_P(LoadNewestByDtypeTest, DamageAnywhereInAShardIsFoundByLoading) {
  save(1);
  const CheckpointInfo newest = save(2);
  const auto size = static_cast<int64_t>(fs::file_size(shard(newest)));
  // The length of the header, the header, the first tensor, around the border of the two hashed blocks.
  for (const int64_t at :
       {int64_t{0}, int64_t{20}, int64_t{5000}, (int64_t{16} << 20) - 1, int64_t{16} << 20}) {
    flip_bit(shard(newest), size - at);
    Model model(GetParam());
    EXPECT_EQ(load(model).step, 1) << at;
    EXPECT_TRUE(model.is(1)) << at;
    flip_bit(shard(newest), size - at);
  }
  Model model(GetParam());
  EXPECT_EQ(load(model).step, 2);
}
INSTANTIATE_TEST_SUITE_P(Dtypes, LoadNewestByDtypeTest, testing::Values(at::kFloat, at::kBFloat16));

TEST_F(LoadNewestTest, ReadsEveryByteOnce) {
  if (bytes_read() < 0) GTEST_SKIP() << "this system does not count the bytes that a process reads";
  const CheckpointInfo info = save(1);
  ASSERT_GT(info.num_bytes, 18 << 20);  // more than one hashed block
  const std::vector<CheckpointInfo> candidates = list_checkpoints(checkpoints());
  Model model(at::kFloat);
  const int64_t before = bytes_read();
  load_newest(candidates, model.units.owned(), *model.optimizer, *alone_, events_);
  const int64_t read = bytes_read() - before;
  EXPECT_GE(read, static_cast<int64_t>(fs::file_size(shard(info))));
  EXPECT_LT(read, static_cast<int64_t>(fs::file_size(shard(info))) + 65536);
}

/// Returns the first bytes of the hashed blocks that hold elements [begin, end) of each unit, whose
/// parameters lie one after the other, and of their state.
std::set<int64_t> blocks_of(const CheckpointInfo& info,
                            const std::map<std::string, std::pair<double, double>>& owned) {
  std::set<int64_t> blocks;
  for (const auto& [unit, part] : owned) {
    int64_t rows = 0, begin = 0, num_elements = 0;
    const Manifest manifest = manifest_from_json(info.manifest, info.path);
    const auto count = [](const TensorRecord& tensor) {
      return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
    };
    for (const TensorRecord& tensor : manifest.tensors)
      if (tensor.name == unit + ".a") rows = tensor.shape[0];
    num_elements = rows * 700 + 7 + 300 * 1001;
    const auto first = static_cast<int64_t>(static_cast<double>(num_elements) * part.first);
    const auto last = static_cast<int64_t>(static_cast<double>(num_elements) * part.second);
    for (const char* name : {".a", ".b", ".c"}) {
      int64_t size = 0;
      for (const TensorRecord& tensor : manifest.tensors) {
        if (!tensor.name.ends_with(unit + name)) continue;
        size = count(tensor);
        const int64_t from = std::max(begin, first), to = std::min(begin + size, last);
        if (from >= to) continue;
        const int64_t offset = tensor.pieces.at(0).offset;
        for (int64_t block = (offset + (from - begin) * 4) / kHashBlockBytes;
             block <= (offset + (to - begin) * 4 - 1) / kHashBlockBytes; ++block)
          blocks.insert(block * kHashBlockBytes);
      }
      begin += size;
    }
  }
  return blocks;
}

TEST_F(LoadNewestTest, AStoreIsAskedOnceForTheBlocksThatARankOwnsAndForNoOthers) {
  Model whole(at::kFloat, 20'000);
  whole.fill(1);
  const CheckpointInfo info = save(1, whole);
  for (const auto& [begin, end] : {std::pair{0.0, 1.0}, {0.0, 0.25}, {0.5, 0.75}}) {
    SCOPED_TRACE(begin);
    std::map<int64_t, int> asked;  // number of times, by offset
    CheckpointInfo stored = info;
    stored.read = [&](const std::string& file, int64_t offset, char* to, size_t n) {
      ++asked[offset];
      read_exactly(info.path + "/" + file, offset, to, n);
    };
    std::vector<OwnedRange> ranges;
    for (const OwnedRange& unit : whole.units.owned()) {
      const auto first = static_cast<int64_t>(static_cast<double>(unit.size()) * begin);
      const auto last = static_cast<int64_t>(static_cast<double>(unit.size()) * end);
      const auto numbers = [size = last - first] { return at::zeros({size}, at::kFloat); };
      ranges.push_back(own_shard(unit.layout, first, last, numbers(), numbers(), UnitUse::kTrain));
    }
    const auto optimizer = make_optimizer(OptimizerConfig{AdamWConfig{}}, ranges);
    load_newest({stored}, ranges, *optimizer, *alone_, events_);
    const std::set<int64_t> wanted = blocks_of(info, {{"first", {begin, end}}, {"second", {begin, end}}});
    std::set<int64_t> found;
    for (const auto& entry : asked) {
      found.insert(entry.first);
      EXPECT_EQ(entry.second, 1) << "at " << entry.first;
    }
    EXPECT_EQ(found, wanted);
  }
}

TEST_F(LoadNewestTest, NothingReadableIsAnErrorThatNamesEachAndSaysWhatToDo) {
  const CheckpointInfo older = save(1), newest = save(2);
  flip_bit(shard(older), 1), flip_bit(shard(newest), 5);
  Model model(at::kFloat);
  const Error error = load_error(model);
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  const std::string text = error.what();
  for (const std::string& part : {shard(older), shard(newest), std::string("resume=none")})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(LoadNewestTest, ACheckpointOfAnotherModelIsRefusedAtOnceAndNotSteppedOver) {
  save(1);
  Model other(at::kFloat, /*rows=*/901);
  other.fill(2);
  save(2, other);
  Model model(at::kFloat);
  const Error error = load_error(model);
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("first.a: expected F32 [900, 700], got F32 [901, 700]"),
            std::string::npos)
      << error.what();
  EXPECT_TRUE(events_.lines.empty());
}

TEST_F(LoadNewestTest, ADamagedManifestOfTheNewestIsSaidWhenAnOlderOneIsTaken) {
  save(1);
  const CheckpointInfo newest = save(2);
  flip_bit(newest.path + "/COMMIT", 40);
  const std::vector<CheckpointInfo> candidates = resume_candidates(resuming("auto"), dir_.path());
  Model model(at::kFloat);
  EXPECT_EQ(load_newest(candidates, model.units.owned(), *model.optimizer, *alone_, events_).step, 1);
  ASSERT_EQ(events_.lines.size(), 1u);
  EXPECT_EQ(events_.lines[0].rfind("warning: left out " + fs::path(newest.path).filename().string(), 0), 0u)
      << events_.lines[0];
}

TEST_F(LoadNewestTest, AChangedRouteIsSaidAndAnUnknownOneIsNot) {
  const Json before = {{"kernels", "cpu avx2"}, {"products", "fp32"}, {"threads", "2"}};
  Model model(at::kFloat);
  model.fill(1);
  const auto told = [&](const Json& kept, const Json& now) {
    CheckpointStore store(real_files(), checkpoints(), 0, 1);
    const CheckpointInfo saved =
        store.save({.step = 1, .recipe = Json::object(), .route = kept}, model.tensors());
    events_.lines.clear();
    report_resume(find_checkpoint(saved.path), Json::object(), now, events_);
    EXPECT_EQ(events_.lines.front(), "resume: resumed from step 1 (" + saved.path + ")");
    return events_.lines.size() == 1 ? "" : events_.lines.back();
  };
  EXPECT_EQ(told(before, before), "");
  EXPECT_EQ(told(Json(), before), "");  // of a checkpoint from before routes were kept, or that was imported
  EXPECT_EQ(told(before, {{"kernels", "cpu generic"}, {"products", "fp32"}, {"processor", "EPYC"}}),
            "warning: the route has changed since the checkpoint, so bits may differ from an uninterrupted "
            "run's (checkpoint -> now):\n"
            "  kernels    cpu avx2 -> cpu generic\n"
            "  processor  - -> EPYC\n"
            "  threads    2 -> -");
}

TEST(Resume, TheMeshMayDifferAndMayBeMissingInOldCheckpoints) {
  TrainConfig config;
  config.parallel.dp_replicate = 4;
  const Json recipe = config_to_json(config);
  Json old = recipe, other = recipe;
  old.erase("parallel");
  other["seed"] = 18;
  EXPECT_EQ(recipe_changes(old, recipe, kNotTrained), "");
  EXPECT_EQ(recipe_changes(old, recipe, kOfTheProcess), "");
  EXPECT_EQ(config_hash(old), config_hash(recipe));
  EXPECT_NE(recipe_changes(old, other, kNotTrained).find("seed"), std::string::npos);
}

}  // namespace
}  // namespace tycho
