// Rank 0's texts travel to the others as they are.
#include "trainer/train/product_tuning.h"

#include <set>
#include <sstream>
#include <vector>

#include "trainer/base/cached_text.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/device/device.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/tuned_products.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

/// Returns a file's name: another GPU, library or form of a step has another.
std::string name_of(const TrainConfig& recipe, const LoopContext& context) {
  const Json all = config_to_json(recipe);
  Json decides = {compute_route(context.device, recipe.precision), context.world.size()};
  for (const char* key : {"model", "lora", "fp8", "precision", "seq_len", "global_batch", "micro_batch",
                          "recompute", "parallel"})
    decides.push_back(all.value(key, Json()));
  return hash_hex(decides.dump());
}

std::string of_rank_0(Communicator& world, const std::string& text) {
  return all_gather_strings(world, world.rank() == 0 ? text : "").front();
}

}  // namespace

ProductTuning::ProductTuning(const TrainConfig& recipe, const LoopContext& context) : context_(context) {
  if (context.device.is_cpu() || !gpu_library_multiplies()) return;
  use_products("", context.device);  // those of an earlier run of this process go
  expect_tuned_products(recipe.products.tuned);
  if (!recipe.products.tuned) return;
  std::string kept;
  if (const std::string folder = cached_folder("products"); context.world.rank() == 0 && !folder.empty()) {
    path_ = folder + "/" + name_of(recipe, context);
    kept = cached_text(path_).value_or("");
  }
  const std::string choices = of_rank_0(context.world, kept);
  is_due_ = choices.empty();
  if (!is_due_) use_products(choices, context.device);
}

void ProductTuning::choose(Tensor& idle) {
  is_due_ = false;
  std::set<std::string> forms;
  for (const std::string& of_rank : all_gather_strings(context_.world, untuned_products(context_.device))) {
    std::istringstream in(of_rank);
    for (std::string line; std::getline(in, line);) forms.insert(line + "\n");
  }
  std::string mine;
  if (context_.world.rank() == 0) {
    std::string all;
    for (const std::string& line : forms) all += line;
    mine = time_products(all, idle);
    if (!path_.empty()) cache_text(path_, mine);
  }
  const std::string choices = of_rank_0(context_.world, mine);
  use_products(choices, context_.device);
  context_.reporter.event(
      "products", "chose the algorithms of " + std::to_string(forms.size()) + " forms of products by timing",
      {{"forms", forms.size()}, {"hash", hash_hex(choices)}});
}

}  // namespace tycho
