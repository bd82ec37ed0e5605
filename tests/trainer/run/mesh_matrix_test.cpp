// A table of meshes, accumulation, recomputation, dtypes, families and optimizers: losses, gradients and
// weights of every row are those of one rank, as the engine computed them before it had a mesh with five
// axes.
// long because: the table has a row for each mesh.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/comm/recording.h"
#include "tests/trainer/expression/loss_terms.h"
#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json_writer.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

const std::string kGoldenFile = std::string(TYCHO_GOLDEN_DIR) + "/one_rank_curves.json";
constexpr int64_t kSteps = 20, kSequences = 160, kSeqLen = 16, kVocab = 64;

/// How far a row may be from one rank. fp32: sums of a few thousand numbers in another order differ by 1e-7,
/// which twenty steps do not let grow above 1e-6. bf16: a sum in another order is rounded to the next bf16,
/// 2^-8 away; such numbers are few at first, and losses are means over 128 tokens. Muon orthogonalises in
/// bf16 where the machine has it.
struct Bounds {
  double first_loss = 1e-7, loss = 1e-6, gradient = 1e-5, weight = 1e-4;
};
constexpr Bounds kFp32Bounds = {}, kBf16Bounds = {3e-3, 1e-2, 5e-2, 3e-2};
/// A bf16 that is rounded to its neighbour may get another code of fp8, 2^-4 away.
constexpr Bounds kFp8Bounds = {5e-3, 2e-2, 2e-1, 5e-2};

struct Recipe {
  std::function<void(TrainConfig&)> write;
  Bounds bounds = kFp32Bounds;
};

LlamaConfig llama(int64_t layers, bool tied) {
  LlamaConfig model;
  model.width = 32, model.layers = layers, model.heads = 4, model.kv_heads = 2, model.ffn_width = 64;
  model.vocab_size = kVocab, model.tied = tied;
  return model;
}

MptConfig mpt(double dropout) {
  MptConfig model;
  model.width = 32, model.layers = 2, model.heads = 4, model.kv_heads = 2, model.vocab_size = kVocab;
  model.max_seq_len = kSeqLen, model.positions = PositionKind::kAlibi;
  model.attn_dropout = dropout, model.resid_dropout = dropout, model.embedding_dropout = dropout;
  return model;
}

Gpt2Config gpt2() {
  Gpt2Config model;
  model.width = 32, model.layers = 2, model.heads = 4, model.vocab_size = kVocab + 1;
  model.max_seq_len = kSeqLen;
  return model;
}

template <class Family>
Family dense(int64_t layers) {
  Family model;
  model.width = 32, model.layers = layers, model.heads = 4, model.kv_heads = 2, model.head_width = 12;
  model.ffn_width = 48, model.vocab_size = kVocab, model.sliding_window = 5;
  return model;
}

/// Norms on both sides of branches and of each head, two rotations, windows, a cap of logits.
Gemma3Config gemma3() {
  auto model = dense<Gemma3Config>(4);
  model.layer_types = {LayerType::kSliding, LayerType::kFull}, model.query_pre_attn_scalar = 12;
  model.final_softcap = 20;
  return model;
}

/// Fused matrices, rotations of half of each head, dropout of branches.
Phi3Config phi3() {
  auto model = dense<Phi3Config>(2);
  model.partial_rotary_factor = 0.5, model.resid_dropout = 0.1;
  return model;
}

/// Norms after branches and over all heads, windows, yarn in the last block.
Olmo3Config olmo3() {
  auto model = dense<Olmo3Config>(2);
  model.layer_types = {LayerType::kSliding, LayerType::kFull};
  model.rope_scaling = {.type = RopeScaling::kYarn, .factor = 4, .original_max_seq_len = 8};
  return model;
}

/// A loss of all that is known of a token, over documents, with weights and marks.
void write_loss(TrainConfig& c) {
  c.model.value = llama(2, true);
  c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-6};
  auto& data = std::get<MdsConfig>(c.train_data.value);
  data.weights = "weights", data.eos_token_id = 7;
  DefinedLossConfig loss;
  loss.defined = "own";
  loss.terms = {
      {"penalty", term_of("add mul 0.001 mul lse lse mul 0.01 mul sub most px exp mul -0.1 position")},
      {"smoothed",
       term_of("where lt weight 0 mul 0.5 sub lse target sub sub lse mul 0.9 target mul 0.1 mean")}};
  c.loss.value = loss;
}

// Biases of keys have gradients of rounding errors alone; a large eps keeps Adam from blowing them up.
const std::map<std::string, Recipe>& recipes() {
  static const std::map<std::string, Recipe> all = {
      {"llama-adamw", {[](TrainConfig& c) {
         c.model.value = llama(2, true);
         c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-6};
       }}},
      {"llama-loss", {write_loss}},
      {"llama-loss-bf16",
       {[](TrainConfig& c) {
          write_loss(c);
          c.precision = Precision::kBf16;
        },
        kBf16Bounds}},
      {"llama-sgd", {[](TrainConfig& c) {
         c.model.value = llama(4, false);
         c.optimizer.value = SgdConfig{.lr = 1};
         c.clip.norm = 0.3;  // always clipped
       }}},
      {"llama-muon",
       {[](TrainConfig& c) {
          c.model.value = llama(2, false);
          c.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
        },
        {1e-7, 3e-3, 1e-5, 1e-1}}},
      {"mpt-dropout-sgd", {[](TrainConfig& c) {
         c.model.value = mpt(0.1);
         c.optimizer.value = SgdConfig{.lr = 0.5};
       }}},
      {"mpt-decoupled-adamw", {[](TrainConfig& c) {
         c.model.value = mpt(0);
         c.optimizer.value = DecoupledAdamWConfig{.lr = 3e-3, .eps = 1e-3};
       }}},
      {"gpt2-sgd", {[](TrainConfig& c) {
         c.model.value = gpt2();
         c.optimizer.value = SgdConfig{.lr = 0.5};
       }}},
      {"gpt2-adamw", {[](TrainConfig& c) {
         c.model.value = gpt2();
         c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-3};
       }}},
      {"gemma3-adamw", {[](TrainConfig& c) {
         c.model.value = gemma3();
         c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-3};
       }}},
      {"phi3-dropout-sgd", {[](TrainConfig& c) {
         c.model.value = phi3();
         c.optimizer.value = SgdConfig{.lr = 0.5};
       }}},
      {"olmo3-adamw", {[](TrainConfig& c) {
         c.model.value = olmo3();
         c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-3};
       }}},
      {"llama-adamw-bf16",
       {[](TrainConfig& c) {
          c.model.value = llama(2, true);
          c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-6};
          c.precision = Precision::kBf16;
        },
        kBf16Bounds}},
      {"llama-fp8",
       {[](TrainConfig& c) {
          LlamaConfig model = llama(2, true);
          model.width = 64;  // parts of four ranks are multiples of 16
          c.model.value = model;
          c.model.fp8.recipe = Fp8Recipe::kRowwiseWithGwHp;
          c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-6};
          c.precision = Precision::kBf16;
        },
        kFp8Bounds}},
      {"mpt-sgd-bf16",
       {[](TrainConfig& c) {
          c.model.value = mpt(0);
          c.optimizer.value = SgdConfig{.lr = 0.5};
          c.precision = Precision::kBf16;
        },
        kBf16Bounds}},
      {"gpt2-adamw-bf16",
       {[](TrainConfig& c) {
          c.model.value = gpt2();
          c.optimizer.value = AdamWConfig{.lr = 3e-3, .eps = 1e-3};
          c.precision = Precision::kBf16;
        },
        kBf16Bounds}}};
  return all;
}

// A recipe, the sizes of axes that are not 1, the sequences of a micro-batch of 8, and keys that are not the
// default. With dropout micro-batches have one size, since masks are drawn for each.
const std::vector<std::string> kTable = {
    "llama-adamw micro1",
    "llama-adamw micro8",
    "llama-adamw micro4 full",
    "llama-adamw micro3",
    "llama-adamw rep2 micro4",
    "llama-adamw rep2 micro1 selective",
    "llama-adamw rep8 micro1",
    "llama-adamw shard2 micro1 full",
    "llama-adamw shard4 micro1 keep_params",
    "llama-adamw shard8 micro1",
    "llama-adamw shard4 micro1 keep_gradients full",
    "llama-adamw rep2 shard2 micro1",
    "llama-adamw rep2 shard4 micro1",
    "llama-adamw rep4 shard2 micro1 keep_params",
    "llama-adamw rep2 shard2 micro1 canonical",
    "llama-adamw shard4 micro2 canonical",
    "llama-adamw rep2 tp4 micro1 canonical",
    "llama-adamw shard2 cp2 micro1 canonical",
    "llama-adamw pp2 rep2 micro1 canonical",
    "llama-adamw shard2 cp2 tp2 micro2 canonical",
    "llama-adamw tp2 micro2",
    "llama-adamw tp4 micro1 selective",
    "llama-adamw tp4 micro4 whole full",
    "llama-adamw shard2 tp2 micro1",
    "llama-adamw rep2 tp2 micro2 whole",
    "llama-adamw rep2 shard2 tp2 micro1",
    "llama-adamw cp2 micro2",
    "llama-adamw cp4 micro1 full",
    "llama-adamw shard2 cp2 micro1",
    "llama-adamw cp2 tp2 micro1",
    "llama-adamw shard2 cp2 tp2 micro1 keep_gradients",
    "llama-adamw ring2 micro2",
    "llama-adamw ring4 micro1 full",
    "llama-adamw shard2 ring2 tp2 micro1 keep_gradients",
    "llama-adamw shard2 ring2 micro1 canonical",
    "llama-adamw pp2 ring2 tp2 micro2",
    "llama-adamw pp2 micro1",
    "llama-adamw pp2 micro2 gpipe",
    "llama-adamw pp2 shard2 micro1",
    "llama-adamw pp2 rep2 micro1 full",
    "llama-adamw pp2 tp2 micro2",
    "llama-adamw pp2 cp2 micro1",
    "llama-adamw pp2 shard2 tp2 micro1",
    "llama-adamw pp2 rep2 shard2 micro1 keep_params",
    "llama-adamw pp2 cp2 tp2 micro2",
    "llama-loss micro1",
    "llama-loss micro3",
    "llama-loss rep2 shard2 micro1 canonical",
    "llama-loss shard4 micro2 full",
    "llama-loss tp2 micro2",
    "llama-loss tp4 micro4 whole full",
    "llama-loss cp2 micro2 selective",
    "llama-loss ring2 tp2 micro1",
    "llama-loss pp2 shard2 micro1",
    "llama-loss pp2 cp2 tp2 micro2",
    "llama-loss-bf16 micro1",
    "llama-loss-bf16 shard2 tp2 micro2 full",
    "llama-sgd micro1",
    "llama-sgd shard2 micro2 keep_gradients",
    "llama-sgd rep2 shard2 micro2",
    "llama-sgd tp4 micro2",
    "llama-sgd cp2 micro8",
    "llama-sgd pp4 micro1",
    "llama-sgd pp2 shard2 micro2 chunks2 full",
    "llama-sgd pp4 tp2 micro1 gpipe",
    "llama-sgd pp2 rep2 tp2 micro1 selective",
    "llama-muon micro1",
    "llama-muon rep2 micro4",
    "llama-muon shard2 micro2",
    "llama-muon shard2 tp2 micro1",
    "mpt-dropout-sgd micro1",
    "mpt-dropout-sgd rep4 micro1",
    "mpt-dropout-sgd shard2 micro1 full",
    "mpt-dropout-sgd tp2 micro1",
    "mpt-dropout-sgd cp2 micro1",
    "mpt-dropout-sgd ring4 micro1",
    "mpt-dropout-sgd pp2 micro1",
    "mpt-dropout-sgd rep2 shard2 tp2 micro1 whole",
    "mpt-decoupled-adamw micro1",
    "mpt-decoupled-adamw shard4 micro2 selective",
    "mpt-decoupled-adamw tp4 micro2",
    "mpt-decoupled-adamw shard2 cp2 micro2",
    "mpt-decoupled-adamw pp2 tp2 micro4 full",
    "gpt2-sgd micro1",
    "gpt2-sgd shard2 tp2 micro2",
    "gpt2-sgd cp2 micro2 selective",
    "gpt2-adamw micro1",
    "gpt2-adamw shard4 micro1 full",
    "gpt2-adamw tp2 micro4 whole",
    "gpt2-adamw pp2 rep2 micro2",
    "gpt2-adamw pp2 shard2 cp2 micro1",
    "gpt2-adamw pp2 shard2 ring2 micro1",
    "gemma3-adamw micro1",
    "gemma3-adamw shard2 micro2 full",
    "gemma3-adamw tp2 micro4",
    "gemma3-adamw shard2 cp2 micro2 canonical",
    "gemma3-adamw pp2 ring2 micro4 selective",
    "gemma3-adamw pp2 tp2 micro2",
    "phi3-dropout-sgd micro1",
    "phi3-dropout-sgd shard2 tp2 micro1 full",
    "phi3-dropout-sgd cp2 tp2 micro1 whole",
    "phi3-dropout-sgd pp2 rep2 micro1 canonical",
    "olmo3-adamw micro1",
    "olmo3-adamw shard2 ring2 micro2",
    "olmo3-adamw pp2 tp2 micro2 full",
    "llama-adamw-bf16 micro1",
    "llama-adamw-bf16 micro4",
    "llama-adamw-bf16 rep4 micro1",
    "llama-adamw-bf16 shard2 micro2 full",
    "llama-adamw-bf16 shard2 tp2 micro1",
    "llama-adamw-bf16 pp2 cp2 micro2",
    "llama-adamw-bf16 ring4 micro1",
    "llama-fp8 micro1",
    "llama-fp8 micro4",
    "llama-fp8 shard2 micro2 full",
    "llama-fp8 tp2 micro2",
    "llama-fp8 tp2 micro4 whole full",
    "llama-fp8 tp4 micro2",
    "llama-fp8 shard2 cp2 tp2 micro2",
    "llama-fp8 pp2 tp2 micro2",
    "mpt-sgd-bf16 micro1",
    "mpt-sgd-bf16 rep2 shard2 micro2",
    "mpt-sgd-bf16 tp2 micro2 selective",
    "gpt2-adamw-bf16 micro1",
    "gpt2-adamw-bf16 shard4 micro2",
    "gpt2-adamw-bf16 cp2 tp2 micro1",
};

std::vector<std::string> words_of(const std::string& row) {
  std::istringstream in(row);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Of a tensor: its norm, and its product with numbers that differ from element to element.
struct Traits {
  double norm = 0, product = 0;
  static Traits of(const std::vector<double>& values) {
    Traits traits;
    for (size_t i = 0; i < values.size(); ++i) {
      traits.norm += values[i] * values[i];
      traits.product += values[i] * std::cos(0.7 * static_cast<double>(i) + 0.3);
    }
    traits.norm = std::sqrt(traits.norm);
    return traits;
  }
};

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, Traits> gradients, weights;  // of the first step; after the last one
};

class MeshMatrix : public ShardedRun, public testing::WithParamInterface<std::string> {
 protected:
  MeshMatrix() {
    config_.max_duration = {kSteps, DurationUnit::kBatch};
    write_rows();
  }

  /// Rows that a model can learn, from whole numbers alone.
  void write_rows() {
    const std::string dir = dir_ / "data/train";
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    MdsWriter writer(real_files(), dir,
                     {.columns = {{"tokens", "ndarray:int32"}, {"weights", "ndarray:float32"}}});
    for (int64_t i = 0; i < kSequences; ++i) {
      std::vector<int32_t> tokens;
      std::vector<float> weights;  // thirds are not exact; every fifth is a mark
      for (int64_t t = 0; t < kSeqLen; ++t)
        weights.push_back(static_cast<float>(1 + (i + t) % 4) / (t % 5 == 4 ? -3.0f : 3.0f));
      for (int64_t t = 0; t < kSeqLen; ++t)
        tokens.push_back(static_cast<int32_t>((i + t * (1 + i % 3) + t * t % 3) % kVocab));
      writer.write(
          {encode_mds_array(tokens.data(), kSeqLen, 4), encode_mds_array(weights.data(), kSeqLen, 4)});
    }
    writer.finish();
  }

  void set(const std::string& word, TestMesh& mesh) {
    const size_t at = word.find_first_of("0123456789");
    const std::string key = word.substr(0, at);
    const int64_t number = at == std::string::npos ? 0 : std::stoll(word.substr(at));
    const std::map<std::string, int64_t*> axes = {{"rep", &mesh.replicate},
                                                  {"shard", &mesh.shard},
                                                  {"tp", &mesh.tp},
                                                  {"cp", &mesh.cp},
                                                  {"pp", &mesh.pp}};
    ParallelConfig& parallel = config_.parallel;
    if (const auto axis = axes.find(key); axis != axes.end())
      *axis->second = number;
    else if (key == "micro")
      config_.micro_batch = Duration{static_cast<double>(number), DurationUnit::kSample};
    else if (key == "chunks")
      parallel.pp_schedule = PipelineSchedule::kInterleaved, parallel.pp_chunks = number;
    else if (key == "full")
      config_.recompute = {Recompute::kFull, 1};
    else if (key == "selective")
      config_.recompute = {Recompute::kSelective, 1};
    else if (key == "whole")
      mesh.sequence = false;
    else if (key == "ring")
      mesh.ring = true, mesh.cp = number;
    else if (key == "keep_params")
      parallel.reshard_after_forward = false;
    else if (key == "keep_gradients")
      parallel.keep_gradients = true;
    else if (key == "gpipe")
      parallel.pp_schedule = PipelineSchedule::kGpipe;
    else if (key == "canonical")
      parallel.reduce = GradientOrder::kCanonical;
    else
      ADD_FAILURE() << "the table has an unknown word: " << word;
  }

  Outcome outcome_of(const std::string& row) {
    std::vector<std::string> words = words_of(row);
    recipes().at(words.front()).write(config_);
    words.erase(words.begin());
    TestMesh mesh;
    for (const std::string& word : words) set(word, mesh);
    schedules_.assign(static_cast<size_t>(mesh.num_ranks()), {});
    make_world_ = [&](const RankInfo& place, const MeetOptions& options, SumOrder order) {
      return std::make_unique<RecordingCommunicator>(open_world(place, options, order),
                                                     schedules_[static_cast<size_t>(place.rank)]);
    };
    Outcome outcome;
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      const bool looks = session.facts().rank == 0;
      const auto step = [&](int64_t steps) {
        for (const StepMetrics& metrics : session.step(steps))
          if (looks) outcome.losses.push_back(metrics.loss);
      };
      step(1);
      for (int64_t p = 0; p < std::ssize(session.params()); ++p) {
        const Traits traits = Traits::of(session.grad(p)->values());
        if (looks) outcome.gradients[session.params()[static_cast<size_t>(p)].name] = traits;
      }
      step(kSteps - 1);
      for (int64_t p = 0; p < std::ssize(session.params()); ++p) {
        const Traits traits = Traits::of(session.weight(p)->values());
        if (looks) outcome.weights[session.params()[static_cast<size_t>(p)].name] = traits;
      }
    }));
    return outcome;
  }

  std::vector<Schedule> schedules_;  // of all ranks of the newest run: all that they called, in order
};

Json json_of(const std::map<std::string, Traits>& tensors) {
  Json json = Json::object();
  for (const auto& [name, traits] : tensors) json[name] = {traits.norm, traits.product};
  return json;
}

/// Relative to the tensor, or to a thousandth of the largest one where it is next to nothing.
void expect_near(const std::map<std::string, Traits>& given, const Json& wanted, double bound) {
  ASSERT_EQ(given.size(), wanted.size());
  double largest = 0;
  for (const auto& [name, one] : wanted.items()) largest = std::max(largest, one[0].get<double>());
  for (const auto& [name, one] : wanted.items()) {
    const double norm = one[0], scale = std::max(norm, 1e-3 * largest);
    EXPECT_NEAR(given.at(name).norm, norm, bound * scale) << name;
    EXPECT_NEAR(given.at(name).product, one[1].get<double>(), bound * scale) << name;
  }
}

const Json& goldens() {
  static const Json json = parse_json(read_file(kGoldenFile), kGoldenFile);
  return json;
}

/// TYCHO_UPDATE_GOLDENS=1 writes the curve of one rank, with as many micro-batches as sequences.
void write_golden(const std::string& recipe, const Outcome& one) {
  Json all =
      std::filesystem::exists(kGoldenFile) ? parse_json(read_file(kGoldenFile), kGoldenFile) : Json::object();
  all[recipe] = {
      {"losses", one.losses}, {"gradients", json_of(one.gradients)}, {"weights", json_of(one.weights)}};
  std::ofstream(kGoldenFile) << all.dump(1) << "\n";
}

TEST_P(MeshMatrix, IsOneRank) {
  const std::string recipe = words_of(GetParam()).front();
  if (GetParam() == recipe + " micro1" && std::getenv("TYCHO_UPDATE_GOLDENS") != nullptr)
    return write_golden(recipe, outcome_of(GetParam()));
  const Bounds bounds = recipes().at(recipe).bounds;
  const Json& wanted = goldens().at(recipe);
  const Outcome given = outcome_of(GetParam());
  EXPECT_EQ(first_fault(schedules_), "");
  ASSERT_EQ(given.losses.size(), static_cast<size_t>(kSteps));
  for (size_t i = 0; i < given.losses.size(); ++i)
    EXPECT_NEAR(given.losses[i] / wanted["losses"][i].get<double>(), 1,
                i == 0 ? bounds.first_loss : bounds.loss)
        << "step " << i + 1;
  EXPECT_LT(given.losses.back(), 0.97 * given.losses.front()) << "nothing is learned: every mesh would pass";
  expect_near(given.gradients, wanted["gradients"], bounds.gradient);
  expect_near(given.weights, wanted["weights"], bounds.weight);
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, MeshMatrix, testing::ValuesIn(kTable), test_name);

}  // namespace
}  // namespace tycho
