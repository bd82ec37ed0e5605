// How ranks share the work, as TorchTitan and Nanotron say it.
#include <gtest/gtest.h>

#include <string>

#include "bindings/import/import.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

TEST(ForeignImport, TakesTensorParallelAndPipelines) {
  const auto notes = [](const char* file, const std::string& text) {
    std::string out;
    for (const std::string& note : import_recipe(file, text).notes) out += note + "\n";
    return out;
  };
  const std::string toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n";
  const auto recipe = [](const char* file, const std::string& text) { return import_recipe(file, text).lua; };
  EXPECT_CONTAINS(recipe("x.toml", toml + "tensor_parallel_degree = 8\n"), "r.parallel.tp = 8");
  EXPECT_EQ(notes("x.toml", toml + "tensor_parallel_degree = 8\n"), "");
  const auto staged = [&](const std::string& schedule) {
    return recipe("x.toml", toml + "pipeline_parallel_degree = 8\npipeline_parallel_schedule = " + schedule);
  };
  EXPECT_CONTAINS(staged("\"GPipe\"\n"), "r.parallel.pp = 8\nr.parallel.pp_schedule = \"gpipe\"");
  EXPECT_CONTAINS(staged("\"1F1B\"\n"), "r.micro_batch = \"1sp\"");
  EXPECT_CONTAINS(staged("\"1F1B\"\npipeline_parallel_microbatch_size = 4\n"), "r.micro_batch = \"4sp\"");
  EXPECT_CONTAINS(staged("\"Interleaved1F1B\"\n"), "\"interleaved\"\nr.parallel.pp_chunks = 2");
  EXPECT_THROW(staged("\"ZBVZeroBubble\"\n"), Error);
  EXPECT_EQ(notes("x.toml", toml + "pipeline_parallel_degree = 1\n"), "");
  EXPECT_LACKS(recipe("x.toml", toml + "pipeline_parallel_schedule = \"GPipe\"\n"), "pp_schedule =");
  EXPECT_CONTAINS(notes("x.toml", toml + "[metrics]\nenable_wandb = true\n"),
                  "upload them with `wandb sync`");
  const std::string yaml = "tokens: {train_steps: 5}\nparallelism: {dp: 2, tp: 4, pp: 2, tp_mode: ";
  EXPECT_CONTAINS(recipe("x.yaml", yaml + "ALL_REDUCE}\n"), "r.parallel.tp = 4");
  EXPECT_CONTAINS(recipe("x.yaml", yaml + "ALL_REDUCE}\n"), "r.parallel.sequence_parallel = false");
  EXPECT_CONTAINS(recipe("x.yaml", yaml + "REDUCE_SCATTER}\n"), "r.parallel.sequence_parallel = true");
  EXPECT_CONTAINS(recipe("x.yaml", yaml + "ALL_REDUCE, pp_engine: afab}\n"), "pp_schedule = \"gpipe\"");
}

}  // namespace
}  // namespace tycho
