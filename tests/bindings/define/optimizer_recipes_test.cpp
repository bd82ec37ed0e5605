// The optimizers of recipes/optim/ against trajectories of published code.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bindings/define/recipe.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/optim/published_problem.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Another order of operations in fp32 needs half of this
/// (tests/golden/optim/published/README.md).
constexpr double kRounding = 1e-6;

/// Returns values as fields of a Lua table.
std::string lua_fields(const Json& values) {
  std::string text;
  for (const auto& [name, value] : values.items()) {
    std::string lua = value.dump();
    if (value.is_array()) lua.front() = '{', lua.back() = '}';
    text += name + " = " + lua + ", ";
  }
  return text;
}

/// Returns the optimizer `name` of recipes/optim/, made by a recipe whose model
/// has the shapes of the published problem.
OptimizerConfig optimizer_of(const std::string& name, const std::string& fields) {
  const char* source = std::getenv("TYCHO_SOURCE_DIR");
  const TempDir temp;
  const fs::path folder = temp.path();
  fs::create_directory_symlink(fs::absolute(std::string(source == nullptr ? "." : source) + "/recipes/optim"),
                               folder / "optim");
  std::ofstream(folder / "x.lua")
      << "local t = require \"tycho\"\nlocal r = t.recipe "
         "\"x\"\nr.max_duration, r.seq_len = \"10ba\", 8\n"
         "r.model = t.model.qwen3 { width = 8, heads = 3, kv_heads = 3, head_width = 4, layers = 1, "
         "ffn_width = 8, "
         "vocab_size = 16, tied = true }\nr.train_data = t.data.mds { local_dir = \"data\" "
         "}\nr.optimizer = require \"optim."
      << name << "\" { " << fields << " }\nreturn r\n";
  return resolve_recipe({.file = (folder / "x.lua").string()}).config.optimizer;
}

PublishedDistance distance_of(const OptimizerConfig& config, const PublishedCase& one) {
  LocalUnits units(published_units(), at::kFloat, at::kCPU, UnitUse::kTrain);
  const auto optimizer = make_optimizer(config, units.owned(), param_rules(config, {}, published_units()));
  return train_published(one, units.owned(), *optimizer);
}

void expect_published(const std::string& name) {
  for (const PublishedCase& one : published_cases(name)) {
    Json arguments = one.arguments;
    arguments.erase("warmup_steps");  // part of the rates here
    const OptimizerConfig config = optimizer_of(name, lua_fields(arguments) + "decay_mask = \"all\"");
    const PublishedDistance distance = distance_of(config, one);
    EXPECT_LE(distance.weights, kRounding) << one.name;
    EXPECT_LE(distance.losses, 5 * kRounding) << one.name;
  }
}

TEST(OptimizerRecipesTest, AdEMAMixIsApples) { expect_published("ademamix"); }
TEST(OptimizerRecipesTest, CautiousAdamWIsItsAuthors) { expect_published("cautious_adamw"); }
TEST(OptimizerRecipesTest, ScheduleFreeIsItsAuthors) { expect_published("schedule_free"); }

TEST(OptimizerRecipesTest, NorMuonIsItsAuthors) {
  for (const PublishedCase& one : published_cases("normuon")) {
    Json arguments = one.arguments;
    const Json others = arguments["others"];
    arguments.erase("others");
    arguments["betas"] = others["betas"], arguments["eps"] = others["eps"];
    arguments["adamw_lr_scale"] = others["lr"].get<double>() / arguments["lr"].get<double>();
    const OptimizerConfig config = optimizer_of("normuon", lua_fields(arguments) + "decay_mask = \"hidden\"");
    const PublishedDistance distance = distance_of(config, one);
    EXPECT_LE(distance.weights, kRounding);
    EXPECT_LE(distance.losses, 5 * kRounding);
  }
}

TEST(OptimizerRecipesTest, SoapHasTheLossesOfItsAuthors) {
  for (const PublishedCase& one : published_cases("soap")) {
    const OptimizerConfig config = optimizer_of("soap", lua_fields(one.arguments) + "decay_mask = \"all\"");
    EXPECT_LE(distance_of(config, one).losses, 1e-4) << one.name;
  }
}

}  // namespace
}  // namespace tycho
