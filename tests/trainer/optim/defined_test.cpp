// Optimizers of recipes: the built-ins' bits, and the same bits on any cut of matrices among ranks.
#include <gtest/gtest.h>

#include <map>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "trainer/base/json_reader.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"

namespace tycho {
namespace {

/// A block with matrices and a vector, as parts of ranks cut it.
std::vector<UnitSpec> two_units() {
  UnitSpec embedding{.name = "embedding"}, block{.name = "block"}, head{.name = "head"};
  embedding.params = {{"embedding", {7, 12}}};
  block.params = {{"norm", {13}, {}, false}, {"wide", {5, 12}}, {"tall", {12, 5}}, {"bias", {5}, {}, false}};
  head.params = {{"head", {7, 12}}};
  return {embedding, block, head};
}

Json expression_json(const std::string& text) {
  std::string json = text;
  std::replace(json.begin(), json.end(), '\'', '"');
  return parse_json(json, "test");
}

DefinedOptimizerConfig defined(const std::string& updates) {
  DefinedOptimizerConfig config;
  config.defined = "mine";
  config.lr = 0.02, config.weight_decay = 0.1;
  config.values = {{"betas", {0.9, 0.95}}, {"eps", 1e-8}, {"every", 2}};
  config.updates = expression_json(updates);
  return config;
}

/// AdamW in the order of the built-in kernel.
const std::string kAdamW =
    R"([{'hidden': HIDDEN, 'states': [{'name': 'exp_avg'}, {'name': 'exp_avg_sq'}], 'expression': {
  'inputs': [{'name': 'p'}, {'name': 'g'}, {'name': 's.exp_avg'}, {'name': 's.exp_avg_sq'}, {'name': 'h.lr', 'scalar': true},
    {'name': 'h.step', 'scalar': true}, {'name': 'h.weight_decay', 'scalar': true}, {'name': 'h.betas.1', 'scalar': true},
    {'name': 'h.betas.2', 'scalar': true}, {'name': 'h.eps', 'scalar': true}],
  'nodes': [['input', 0], ['input', 1], ['input', 2], ['input', 3], ['input', 4], ['input', 5], ['input', 6], ['input', 7], ['input', 8],
    ['input', 9], ['number', 1],
    ['mul', 7, 2], ['sub', 10, 7], ['mul', 12, 1], ['add', 11, 13],
    ['mul', 8, 3], ['sub', 10, 8], ['mul', 1, 1], ['mul', 17, 16], ['add', 15, 18],
    ['pow', 7, 5], ['sub', 10, 20], ['pow', 8, 5], ['sub', 10, 22], ['sqrt', 23],
    ['sqrt', 19], ['div', 10, 24], ['mul', 25, 26], ['add', 27, 9], ['div', 14, 28], ['div', 4, 21],
    ['mul', 4, 6], ['sub', 10, 31], ['mul', 0, 32], ['mul', 30, 29], ['sub', 33, 34]],
  'outputs': [{'name': 'p', 'node': 35}, {'name': 's.exp_avg', 'node': 14}, {'name': 's.exp_avg_sq', 'node': 19}]}}])";

/// A momentum, multiplied by an average of its Gram matrix that is renewed in every second step, divided by
/// the root of averages of its rows' squares; one number of state counts steps.
Json whole_update(const Shape& shape, bool hidden) {
  const int64_t rows = shape.size() < 2 ? 1 : shape[0], columns = numel(shape) / rows;
  Json one = expression_json(
      R"({'whole': true, 'states': [{'name': 'momentum'}, {'name': 'count', 'scalar': true}], 'expression': {
  'inputs': [{'name': 'p'}, {'name': 'g'}, {'name': 's.momentum'}, {'name': 's.rows'}, {'name': 's.gram'}, {'name': 's.count', 'scalar': true},
    {'name': 'h.lr', 'scalar': true}, {'name': 'h.step', 'scalar': true}, {'name': 'h.weight_decay', 'scalar': true}, {'name': 'h.every', 'scalar': true}],
  'nodes': [['input', 0], ['input', 1], ['input', 2], ['input', 3], ['input', 4], ['input', 5], ['input', 6], ['input', 7], ['input', 8], ['input', 9],
    ['number', 0.9], ['number', 0.1], ['number', 1],
    ['mul', 2, 10], ['mul', 1, 11], ['add', 13, 14],
    ['div', 7, 9], ['floor', 16], ['eq', 16, 17],
    ['transpose', 15], ['mm', 15, 19], ['mul', 20, 11], ['mul', 4, 10], ['add', 21, 22], ['every', 18, 23, 4],
    ['mul', 15, 15], ['mean', 25, 'row'], ['add', 3, 26],
    ['mm', 24, 15], ['add', 27, 12], ['sqrt', 29], ['div', 28, 30], ['add', 31, 15],
    ['mul', 6, 8], ['sub', 12, 33], ['mul', 0, 34], ['mul', 32, 6], ['sub', 35, 36],
    ['add', 5, 12]],
  'outputs': [{'name': 'p', 'node': 37}, {'name': 's.momentum', 'node': 15}, {'name': 's.rows', 'node': 27}, {'name': 's.gram', 'node': 24},
    {'name': 's.count', 'node': 38}]}})");
  one["shape"] = shape, one["hidden"] = hidden;
  one["states"].push_back({{"name", "rows"}, {"shape", {rows, 1}}});
  one["states"].push_back({{"name", "gram"}, {"shape", {rows, rows}}});
  Json& inputs = one["expression"]["inputs"];
  for (const size_t i : {0, 1, 2}) inputs[i]["shape"] = {rows, columns};
  inputs[3]["shape"] = {rows, 1}, inputs[4]["shape"] = {rows, rows};
  return one;
}

DefinedOptimizerConfig whole_config() {
  DefinedOptimizerConfig config = defined("[]");
  for (const Shape& shape : {Shape{5, 12}, Shape{12, 5}, Shape{7, 12}, Shape{13}, Shape{5}})
    for (const bool hidden : {true, false}) config.updates.push_back(whole_update(shape, hidden));
  return config;
}

/// Units of which a range is owned, with their optimizer.
struct Owner {
  Owner(const OptimizerConfig& config, const std::vector<UnitSpec>& specs, at::ScalarType dtype, UnitUse use,
        int64_t part = 0, int64_t parts = 1, Communicator* owners = nullptr) {
    for (const UnitSpec& spec : specs) units.emplace_back(UnitLayout(spec), dtype, at::kCPU, use);
    for (const GatheredUnit& unit : units) {
      const int64_t size = unit.layout().numel();
      ranges.push_back(own_range(unit, size * part / parts, size * (part + 1) / parts, use));
    }
    optimizer = make_optimizer(config, ranges, param_rules(config, {}, specs), 17, owners);
  }
  void take(const std::vector<Tensor>& weights, const std::vector<Tensor>& grads) {
    for (size_t u = 0; u < ranges.size(); ++u) {
      const auto mine = [&](const Tensor& all) { return all.narrow(0, ranges[u].begin, ranges[u].size()); };
      if (!weights.empty()) ranges[u].weights().copy_(mine(weights[u])), ranges[u].refresh_from_master();
      ranges[u].grads.copy_(mine(grads[u]));
    }
  }
  std::vector<GatheredUnit> units;
  std::vector<OwnedRange> ranges;
  std::unique_ptr<Optimizer> optimizer;
};

constexpr int64_t kSteps = 4;

std::vector<Tensor> random_flats() {
  std::vector<Tensor> flats;
  for (const UnitSpec& spec : two_units()) flats.push_back(at::randn({spec.numel()}, at::kFloat));
  return flats;
}

/// Weights and the gradients of kSteps.
struct Draw {
  Draw() {
    at::manual_seed(3);
    weights = random_flats();
    for (int64_t i = 0; i < kSteps; ++i) grads.push_back(random_flats());
  }
  void train(Owner& owner) const {
    for (int64_t step = 1; step <= kSteps; ++step) {
      owner.take(step == 1 ? weights : std::vector<Tensor>{}, grads[static_cast<size_t>(step - 1)]);
      owner.optimizer->step(0.02, step, at::full({1}, 0.25, at::kFloat));
    }
  }
  std::vector<Tensor> weights;
  std::vector<std::vector<Tensor>> grads;
};

const std::pair<at::ScalarType, UnitUse> kUses[] = {{at::kFloat, UnitUse::kTrain},
                                                    {at::kBFloat16, UnitUse::kTrain},
                                                    {at::kBFloat16, UnitUse::kTrainStochastic}};

std::string with_hidden(std::string text, const char* hidden) {
  text.replace(text.find("HIDDEN"), 6, hidden);
  return text;
}

TEST(DefinedTest, AnAdamWOfARecipeHasTheBuiltInsBits) {
  DefinedOptimizerConfig mine = defined(with_hidden(kAdamW, "true"));
  mine.updates.push_back(expression_json(with_hidden(kAdamW, "false"))[0]);
  AdamWConfig adamw;
  adamw.lr = 0.02, adamw.betas = {0.9, 0.95}, adamw.eps = 1e-8, adamw.weight_decay = 0.1;
  const Draw draw;
  for (const auto& [dtype, use] : kUses) {
    Owner ours({mine}, two_units(), dtype, use), built_in({adamw}, two_units(), dtype, use);
    draw.train(ours);
    draw.train(built_in);
    for (size_t u = 0; u < ours.ranges.size(); ++u)
      EXPECT_TRUE(at::equal(ours.ranges[u].params, built_in.ranges[u].params)) << dtype << ", unit " << u;
    const auto &a = ours.optimizer->state(), &b = built_in.optimizer->state();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].flat, b[i].flat)) << a[i].name;
  }
}

/// Returns the state of a parameter.
Tensor state_of(Owner& owner, const std::string& name, const std::string& param) {
  for (const StateBuffer& buffer : owner.optimizer->state())
    for (const Extent& e : buffer.extents)
      if (buffer.name == name && e.spec->name == param)
        return buffer.flat.narrow(0, e.begin, e.size()).view(e.spec->whole_shape());
  return {};
}

TEST(DefinedTest, WholeMatricesAreUpdatedByTheirFormula) {
  Owner owner({whole_config()}, two_units(), at::kFloat, UnitUse::kTrain);
  const Draw draw;
  draw.train(owner);
  const Extent& extent = owner.ranges[1].extents[1];
  const auto part = [&](const std::vector<Tensor>& flats) {
    return flats[1].narrow(0, extent.begin, extent.size()).view({5, 12}).to(at::kDouble);
  };
  Tensor p = part(draw.weights), momentum = at::zeros({5, 12}, at::kDouble);
  Tensor rows = at::zeros({5, 1}, at::kDouble), gram = at::zeros({5, 5}, at::kDouble);
  for (size_t i = 0; i < static_cast<size_t>(kSteps); ++i) {
    momentum = 0.9 * momentum + 0.1 * 0.25 * part(draw.grads[i]);
    if (i % 2 == 1) gram = 0.9 * gram + 0.1 * momentum.mm(momentum.t());
    rows = rows + (momentum * momentum).mean({1}, true);
    const Tensor update = gram.mm(momentum) / (rows + 1).sqrt() + momentum;
    p = p * (1 - 0.02 * 0.1) - 0.02 * update;
  }
  const Tensor got = owner.ranges[1].params.narrow(0, extent.begin, extent.size()).view({5, 12});
  EXPECT_TRUE(at::allclose(got.to(at::kDouble), p, 1e-6, 1e-6));
  EXPECT_TRUE(at::allclose(state_of(owner, "gram", "wide").to(at::kDouble), gram, 1e-6, 1e-6));
  EXPECT_EQ(state_of(owner, "count", "wide").item<float>(), 4);
  EXPECT_EQ(state_of(owner, "gram", "norm").numel(), 1) << "a vector is one row";
}

TEST(DefinedTest, RanksThatShareMatricesHaveTheWholesBits) {
  const OptimizerConfig config{whole_config()};
  const Draw draw;
  for (const auto& one : kUses) {
    const auto [dtype, use] = one;
    Owner whole(config, two_units(), dtype, use);
    draw.train(whole);
    std::atomic<int> counted{0};
    expect_all_well(on_ranks(3, [&, type = dtype, as = use](Communicator& world) {
      Owner owner(config, two_units(), type, as, world.rank(), 3, &world);
      draw.train(owner);
      for (size_t u = 0; u < owner.ranges.size(); ++u) {
        const OwnedRange &mine = owner.ranges[u], &all = whole.ranges[u];
        EXPECT_TRUE(at::equal(mine.params, all.params.narrow(0, mine.begin, mine.size()))) << type << u;
      }
      for (const StateBuffer& buffer : owner.optimizer->state())
        for (const Extent& e : buffer.extents) {
          if (buffer.name != "gram") continue;
          EXPECT_TRUE(at::equal(buffer.flat.narrow(0, e.begin, e.size()).view(e.spec->whole_shape()),
                                state_of(whole, "gram", e.spec->name)));
          counted += !e.spec->part.has_value();
        }
    }));
    EXPECT_EQ(counted, 6) << "one rank saves the state of each parameter";
  }
}

TEST(DefinedTest, StateBeginsWithItsNumber) {
  DefinedOptimizerConfig config = whole_config();
  const std::map<std::string, float> first = {
      {"momentum", 0.5f}, {"count", 3.0f}, {"gram", 0.25f}, {"rows", 0.0f}};
  for (Json& update : config.updates)
    for (Json& state : update["states"])
      if (first.at(state["name"]) != 0) state["init"] = first.at(state["name"]);
  expect_all_well(on_ranks(3, [&](Communicator& world) {
    Owner owner({config}, two_units(), at::kFloat, UnitUse::kTrain, world.rank(), 3, &world);
    for (const StateBuffer& buffer : owner.optimizer->state())
      EXPECT_TRUE(buffer.flat.eq(first.at(buffer.name)).all().item<bool>()) << buffer.name;
  }));
}

TEST(DefinedTest, DrawnStateHasTheSameBitsOnEveryRank) {
  const Json drawn =
      parse_json(R"({"inputs": [{"name": "normal"}, {"name": "uniform"}, {"name": "cut_normal"}],
    "nodes": [["input", 0], ["input", 1], ["add", 0, 1]], "outputs": [{"name": "value", "node": 2}]})",
                 "test");
  DefinedOptimizerConfig config = whole_config();
  for (Json& update : config.updates)
    for (Json& state : update["states"]) state["init"] = drawn;
  config.check_updates();
  Owner whole({config}, two_units(), at::kFloat, UnitUse::kTrain);
  const auto of_whole = [&](const std::string& name, const Extent& e) {
    return state_of(whole, name, e.spec->name).flatten().narrow(0, e.first, e.size());
  };
  for (const StateBuffer& buffer : whole.optimizer->state()) {
    if (buffer.flat.numel() > 1) {
      EXPECT_LT(buffer.flat.min().item<float>(), buffer.flat.max().item<float>());
    }
  }
  expect_all_well(on_ranks(3, [&](Communicator& world) {
    Owner owner({config}, two_units(), at::kFloat, UnitUse::kTrain, world.rank(), 3, &world);
    for (const StateBuffer& buffer : owner.optimizer->state())
      for (const Extent& e : buffer.extents)
        EXPECT_TRUE(at::equal(buffer.flat.narrow(0, e.begin, e.size()), of_whole(buffer.name, e)))
            << buffer.name << " of " << e.spec->name;
  }));
}

TEST(DefinedTest, RefusesResultsOfAnotherShapeThanTheStateThatTheyReplace) {
  const DefinedOptimizerConfig config = whole_config();
  config.check_updates();
  const auto is_refused = [&](int output, int node) {
    DefinedOptimizerConfig wrong = config;
    wrong.updates[0]["expression"]["outputs"][static_cast<size_t>(output)]["node"] = node;
    try {
      wrong.check_updates();
      return false;
    } catch (const Error& error) {
      return std::string(error.what()).find("in the shape of what it replaces") != std::string::npos;
    }
  };
  constexpr int kMatrix = 15, kOfRows = 27, kNumber = 38, kP = 0, kMomentum = 1, kRows = 2, kGram = 3,
                kCount = 4;
  EXPECT_TRUE(is_refused(kRows, kMatrix) && is_refused(kGram, kMatrix) && is_refused(kCount, kMatrix));
  EXPECT_TRUE(is_refused(kRows, kNumber) && is_refused(kP, kOfRows) && is_refused(kMomentum, kOfRows));
  EXPECT_FALSE(is_refused(kMomentum, kNumber)) << "one number for all elements";
}

TEST(DefinedTest, RefusesStateThatBeginsWithNoValueOfAnElement) {
  DefinedOptimizerConfig config = whole_config();
  config.updates[0]["states"][0]["init"] = "normal";
  EXPECT_THROW(config.check_updates(), Error);
  config.updates[0]["states"][0]["init"] = parse_json(
      R"({"inputs": [{"name": "p"}], "nodes": [["input", 0]], "outputs": [{"name": "value", "node": 0}]})",
      "test");
  EXPECT_THROW(config.check_updates(), Error);
}

}  // namespace
}  // namespace tycho
