// How ranks share the work, as TorchTitan and Nanotron say it.
#include <gtest/gtest.h>

#include <string>

#include "bindings/import/import.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

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
  const std::string toml =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nglobal_batch_size = 8\n[parallelism]\n";
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

const std::string kSamples = TYCHO_SOURCE_DIR "/tests/golden/import/samples/";

TEST(TitanJson, ASavedConfigIsImported) {
  const auto recipe = [](const std::string& name) {
    return import_recipe(name, read_file(kSamples + name)).lua;
  };
  const std::string saved = recipe("titan_saved.json");
  EXPECT_CONTAINS(saved, "-- Imported from titan_saved.json, a TorchTitan config saved as JSON.");
  EXPECT_CONTAINS(saved, "r.max_duration = \"100ba\"");
  EXPECT_CONTAINS(saved, "r.recompute = { mode = \"full\", every = 2 }");
  const std::string later = recipe("titan_saved_after_v02.json");
  for (const char* line :
       {"width = 4096, layers = 32", "lr = 0.0003,", "betas = { 0.9, 0.95 }", "weight_decay = 0.1,",
        "r.micro_batch = \"1sp\"", "r.global_batch = \"64sp\"", "r.seq_len = 8192",
        "r.max_duration = \"1000ba\"", "r.recompute.mode = \"selective\"",
        "r.tokenizer = \"./assets/tokenizer/tokenizer.json\"", "r.run_dir = \"./outputs/{run_name}\"",
        "t_warmup = \"200ba\"", "t_decay = \"800ba\""})
    EXPECT_CONTAINS(later, line);
}

TEST(Titan, ADownloadedFolderThatIsNotHereIsItsRepository) {
  const auto recipe = [](const std::string& path) {
    return import_recipe("x.toml",
                         "[model]\nname = \"llama3\"\nflavor = \"8B\"\nhf_assets_path = \"" + path + "\"\n");
  };
  const Imported made = recipe("./assets/hf/Llama-3.1-8B");
  EXPECT_CONTAINS(made.lua, "r.tokenizer = \"hf://meta-llama/Llama-3.1-8B\"");
  EXPECT_CONTAINS(made.notes.at(0), "meta-llama/Llama-3.1-8B on the hub");
  EXPECT_CONTAINS(recipe("./assets/hf/Mine").lua, "r.tokenizer = \"./assets/hf/Mine/tokenizer.json\"");
  EXPECT_CONTAINS(recipe("assets/tokenizer").lua, "r.tokenizer = \"assets/tokenizer/tokenizer.json\"");
  EXPECT_CONTAINS(recipe("hf://acme/words@v1").lua, "r.tokenizer = \"hf://acme/words@v1\"");
}

TEST(Titan, KeysOfOtherVersionsAreNamedAsSuch) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      return import_recipe("x.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + text).lua;
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_CONTAINS(
      refusal("[training]\nbatch_size = 8\n"),
      "training.batch_size = 8: is a key of TorchTitan before v0.2; in v0.2: training.local_batch_size");
  EXPECT_CONTAINS(refusal("[experimental]\npipeline_parallel_degree = 2\n"),
                  "in v0.2: parallelism.pipeline_parallel_degree");
  EXPECT_CONTAINS(refusal("[training]\nmax_context_length = 8\n"),
                  "is a key of TorchTitan after v0.2; in v0.2: training.seq_len");
  EXPECT_CONTAINS(refusal("[float8]\nenable = true\n"), "in v0.2: quantize.linear.float8");
}

TEST(Titan, Float8IsFp8WhereAConverterNeedsIt) {
  const auto made = [](const std::string& converters, const std::string& float8) {
    return import_recipe("x.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + converters +
                                       "[training]\nglobal_batch_size = 8\n[quantize.linear.float8]\n" +
                                       float8);
  };
  const std::string on = "converters = [\"quantize.linear.float8\"]\n";
  const Imported plain = made(on, "filter_fqns = [\"output\"]\n");
  EXPECT_CONTAINS(plain.lua, "\nr.fp8 = t.fp8 { recipe = \"tensorwise\" }\n");
  EXPECT_TRUE(plain.notes.empty()) << plain.notes.at(0);
  const Imported filtered =
      made(on,
           "recipe_name = \"rowwise_with_gw_hp\"\n"
           "filter_fqns = [\"attention.wk\", \"layers.0.feed_forward\", \"w2\", \"auto_filter_small_kn\"]\n");
  EXPECT_CONTAINS(filtered.lua,
                  "r.fp8 = t.fp8 { recipe = \"rowwise_with_gw_hp\", skip_small = true, skip = { "
                  "\"self_attn.k_proj\", \"layers.0.mlp\", \"down_proj\" } }");
  ASSERT_EQ(filtered.notes.size(), 1U);
  EXPECT_CONTAINS(filtered.notes[0], "the output multiplies in bf16 here");
  const Imported gathered = made(on,
                                 "enable_fsdp_float8_all_gather = true\n"
                                 "precompute_float8_dynamic_scale_for_fsdp = true\n");
  EXPECT_CONTAINS(gathered.lua, "\nr.fp8 = t.fp8 { recipe = \"tensorwise\", gather = true }\n");
  EXPECT_CONTAINS(gathered.lua, "all scales are always computed at once after a step");
  EXPECT_LACKS(made("", "recipe_name = \"rowwise\"\n").lua, "r.fp8");
  EXPECT_CONTAINS(made("converters = []\n", "recipe_name = \"rowwise\"\n").lua, "no converter needs it");
  EXPECT_THROW(made("converters = [\"quantize.linear.mx\"]\n", ""), Error);
}

TEST(Titan, ARunThatEndsBeforeItsScheduleIsAPartOfALongerOne) {
  const Imported made = import_recipe(
      "x.toml",
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nsteps = 100\nglobal_batch_size = 8\n"
      "[lr_scheduler]\ntotal_steps = 500\n");
  EXPECT_CONTAINS(made.lua, "r.max_duration = \"500ba\"  -- lr_scheduler.total_steps");
  EXPECT_CONTAINS(made.notes.at(0), "`tycho run FILE --until 100ba` ends where TorchTitan does");
  const std::string usual = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[lr_scheduler]\ntotal_steps = ";
  EXPECT_CONTAINS(import_recipe("x.toml", usual + "20000\n").lua,
                  "r.max_duration = \"20000ba\"  -- lr_scheduler");
  EXPECT_CONTAINS(import_recipe("x.toml", usual + "500\n").lua, "r.max_duration = \"10000ba\"\n");
}

TEST(Titan, ABatchIsAsLargeAsThereAreRanks) {
  const auto made = [](const std::string& degrees) {
    return import_recipe("x.toml",
                         "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\n"
                         "[parallelism]\n" +
                             degrees);
  };
  EXPECT_CONTAINS(made("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n").lua,
                  "r.global_batch = \"32sp\"  -- training.local_batch_size x 8 ranks");
  const Imported unknown = made("");
  EXPECT_CONTAINS(unknown.lua, "r.global_batch = \"4sp\"");
  EXPECT_CONTAINS(unknown.notes.at(0), "on N ranks write 4 x N into r.global_batch");
}

}  // namespace
}  // namespace tycho
