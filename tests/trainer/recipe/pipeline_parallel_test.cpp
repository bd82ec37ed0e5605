// What a pipeline and the model that it cuts have to do with each other.
#include "trainer/recipe/pipeline_parallel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tycho {
namespace {

std::string problems_of(int64_t layers, const ParallelConfig& parallel) {
  TrainConfig config;
  LlamaConfig llama;
  llama.layers = layers;
  config.model.value = llama;
  config.parallel = parallel;
  ConfigProblems problems;
  check_pipeline(config, problems);
  std::string text;
  for (const ConfigProblem& problem : problems.take())
    text += (text.empty() ? "" : "\n") + problem.path + ": " + problem.message;
  return text;
}

TEST(PipelineParallel, NeedsABlockForEachPart) {
  EXPECT_EQ(problems_of(4, {.pp = 4}), "");
  EXPECT_EQ(problems_of(4, {.pp = 5}),
            "parallel.pp: 5 stages with 1 chunk each need 5 blocks or more, and the model has 4; set "
            "parallel.pp to 4 "
            "or less");
  EXPECT_EQ(problems_of(7, {.pp = 4, .pp_chunks = 2}),
            "parallel.pp: 4 stages with 2 chunks each need 8 blocks or more, and the model has 7; set "
            "parallel.pp to 3 "
            "or less");
}

TEST(PipelineParallel, HoldsPartsByHandToTheModel) {
  EXPECT_EQ(problems_of(4, {.pp = 2, .pp_layers = {3, 1}}), "");
  EXPECT_EQ(problems_of(4, {.pp = 2, .pp_layers = {2, 1, 1}}),
            "parallel.pp_layers: 3 numbers for 2 parts of the model; write one for each chunk of each stage, "
            "in the "
            "order of the model, or leave it empty");
  EXPECT_EQ(problems_of(4, {.pp = 2, .pp_layers = {2, 1}}),
            "parallel.pp_layers: adds up to 3 blocks, and the model has 4; write numbers that add up to 4");
}

}  // namespace
}  // namespace tycho
