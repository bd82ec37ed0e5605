// The rules between fields, and the arithmetic of batches and lengths.
#include "trainer/recipe/train_config.h"

#include <gtest/gtest.h>

#include "tests/trainer/recipe/problems_after.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

LlamaConfig& llama(TrainConfig& config) { return std::get<LlamaConfig>(config.model.value); }

TEST(CheckConfig, AcceptsTheDefaults) {
  EXPECT_EQ(problems_after([](TrainConfig&) {}), "");
}

TEST(CheckConfig, LuaHasABoundedShareOfTheMachine) {
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.lua_memory = {1 << 20}; }),
            "lua_memory: expected 16MiB to 1TiB, got 1MiB");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.lua_memory = {int64_t{1} << 50}; }),
            "lua_memory: expected 16MiB to 1TiB, got 1024TiB");
  const auto with_callbacks = [](int count) {
    return [count](TrainConfig& c) {
      for (int i = 0; i < count; ++i) c.callbacks["c" + std::to_string(i)] = {SpeedConfig{}};
    };
  };
  EXPECT_EQ(problems_after(with_callbacks(1000)), "");
  EXPECT_EQ(problems_after(with_callbacks(1001)),
            "callbacks: expected at most 1000, got 1001; one callback can do several things");
}

TEST(CheckConfig, InitialValuesOfTheRecipeReplaceTheFamilys) {
  const auto with = [](const auto& change) {
    return problems_after([&](TrainConfig& c) {
      c.init.value = DefinedInitConfig();
      change(c);
    });
  };
  EXPECT_EQ(with([](TrainConfig&) {}), "");
  EXPECT_EQ(with([](TrainConfig& c) { llama(c).init_std = 0.1; }),
            "model.init_std: has no effect together with init, which replaces it; remove it");
  EXPECT_EQ(with([](TrainConfig& c) { llama(c).init = LlamaInit::kTorchtitan; }),
            "model.init: has no effect together with init, which replaces it; remove it");
  EXPECT_EQ(with([](TrainConfig& c) { llama(c).weights = "models/x"; }),
            "init: has no effect together with model.weights, which replace the initialisation; remove it");
  const std::string wrong = with([](TrainConfig& c) {
    std::get<DefinedInitConfig>(c.init.value).formulas = {{{}, Json::object()}};
  });
  EXPECT_TRUE(wrong.starts_with("init: [expression]")) << wrong;
}

TEST(CheckConfig, ResumeIsNotABoolean) {
  for (const char* given : {"true", "false", "False", "yes", "no", "on", "off", "None", "AUTO"})
    EXPECT_EQ(
        problems_after([&](TrainConfig& c) { c.resume = given; }),
        std::string("resume: expected \"auto\" (resume from the newest checkpoint of the run, or start), "
                    "\"none\" (start over) or the path of a checkpoint, got \"") +
            given + "\"");
  for (const char* good : {"auto", "none", "runs/x", "./true", "step-000000300.1234abcd"})
    EXPECT_EQ(problems_after([&](TrainConfig& c) { c.resume = good; }), "");
}

TEST(CheckConfig, KeepsSequencesWithinTheModel) {
  EXPECT_EQ(problems_after([](TrainConfig& c) { llama(c).max_seq_len = 512; }),
            "seq_len: 1024 is longer than model.max_seq_len = 512; shorten it to 512 or raise max_seq_len");
  EXPECT_EQ(problems_after([](TrainConfig& c) { llama(c).max_seq_len = 1024; }), "");
}

TEST(CheckConfig, WantsWholeBatches) {
  const auto with_batch = [](const char* batch) {
    return [batch](TrainConfig& c) { c.global_batch = Duration::parse(batch); };
  };
  EXPECT_EQ(problems_after(with_batch("1e5tok")),
            "global_batch: 100000tok is not a multiple of seq_len = 1024 tokens; write 100352tok");
  EXPECT_EQ(problems_after(with_batch("100tok")),
            "global_batch: 100tok is not a multiple of seq_len = 1024 tokens; write 1024tok");
  EXPECT_EQ(problems_after(with_batch("2.5sp")), "global_batch: 2.5sp is not a whole number; write 3sp");
  EXPECT_EQ(problems_after(with_batch("8192tok")), "");
  EXPECT_EQ(problems_after(with_batch("6sp"), 4),
            "global_batch: 6 sequences cannot be divided evenly among 4 ranks; write 8sp");
  EXPECT_EQ(problems_after(with_batch("8sp"), 4), "");
}

TEST(CheckConfig, WantsMicroBatchesWithinAStep) {
  const auto with_micro = [](const char* micro) {
    return [micro](TrainConfig& c) { c.micro_batch = Duration::parse(micro); };
  };
  EXPECT_EQ(problems_after(with_micro("3sp")), "");
  EXPECT_EQ(problems_after(with_micro("16sp")),
            "micro_batch: 16sp is more than the 8 sequences of a step; write 8sp");
  EXPECT_EQ(problems_after(with_micro("4sp"), 4),
            "micro_batch: 4sp is more than the 2 sequences of a step on each rank; write 2sp");
  EXPECT_EQ(problems_after(with_micro("1.5sp")), "micro_batch: 1.5sp is not a whole number of sequences");
  EXPECT_EQ(problems_after(with_micro("4sp")), "");
}

TEST(CheckConfig, WantsLengthsThatFitIntoTheRun) {
  const auto with_warmup = [](const char* warmup) {
    return
        [warmup](TrainConfig& c) { c.scheduler.value = CosineConfig{{.t_warmup = Duration::parse(warmup)}}; };
  };
  EXPECT_EQ(problems_after(with_warmup("100ba")), "");
  EXPECT_EQ(problems_after(with_warmup("101ba")),
            "scheduler.t_warmup: takes 101 steps, and max_duration is 100; shorten one or train longer");
  EXPECT_EQ(problems_after(with_warmup("1.5dur")),
            "scheduler.t_warmup: 1.5dur is more than the whole run; write at most 1dur");
  EXPECT_EQ(
      problems_after([](TrainConfig& c) {
        c.scheduler.value = WsdConfig{{.t_warmup = {90, DurationUnit::kBatch}}};
      }),
      "scheduler.t_warmup: t_warmup and t_decay take 110 steps, and max_duration is 100; shorten one or "
      "train longer");
  EXPECT_EQ(
      problems_after([](TrainConfig& c) {
        c.scheduler.value = WsdConfig{{.t_warmup = Duration::parse("0.1dur")}, Duration::parse("0.9dur")};
      }),
      "");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.max_duration = Duration::parse("10.5ba"); }),
            "max_duration: 10.5ba is not a whole number; write 11ba");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.max_duration = Duration::parse("0.5ep"); }), "");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.ckpt.every = Duration::parse("2dur"); }),
            "ckpt.every: 2dur is more than the whole run; write at most 1dur");
}

TEST(CheckConfig, WantsBf16ForWeightsWithoutAMaster) {
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.master_weights = MasterWeights::kStochastic; }),
            "master_weights: stochastic needs bf16, but precision is fp32; set precision = \"bf16\"");
  EXPECT_EQ(problems_after([](TrainConfig& c) {
              c.master_weights = MasterWeights::kNone, c.precision = Precision::kBf16;
            }),
            "");
}

TEST(CheckConfig, WantsBf16ForFp8) {
  const auto fp8 = [](Precision precision, int64_t tp) {
    return [=](TrainConfig& c) {
      c.model.fp8.recipe = Fp8Recipe::kTensorwise, c.precision = precision, c.parallel.tp = tp;
    };
  };
  EXPECT_EQ(problems_after(fp8(Precision::kBf16, 1)), "");
  EXPECT_EQ(problems_after(fp8(Precision::kFp32, 1)),
            "fp8.recipe: tensorwise needs bf16, but precision is fp32; set precision = \"bf16\"");
  EXPECT_EQ(problems_after(fp8(Precision::kBf16, 2), 2), "");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.model.fp8.skip = {"down_proj"}; }),
            "fp8.skip: has no effect unless fp8.recipe is set; remove it");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.model.fp8.gather = true; }),
            "fp8.gather: has no effect unless fp8.recipe is set; remove it");
  const auto gather = [](Fp8Recipe recipe) {
    return [=](TrainConfig& c) {
      c.precision = Precision::kBf16, c.model.fp8.recipe = recipe, c.model.fp8.gather = true;
    };
  };
  EXPECT_EQ(problems_after(gather(Fp8Recipe::kTensorwise)), "");
  EXPECT_EQ(problems_after(gather(Fp8Recipe::kRowwise)),
            "fp8.gather: needs one scale for each matrix, which rowwise does not have: remove it, or set "
            "fp8.recipe = \"tensorwise\"");
}

TEST(CheckConfig, WantsAModelForAdapters) {
  const auto adapters = [](TrainConfig& c) { c.model.lora.rank = 4; };
  EXPECT_EQ(problems_after(adapters),
            "lora.rank: adapters are trained for a model that exists: name its folder with model.weights, or "
            "remove "
            "lora");
  const auto shared = [](double dropout) {
    return [=](TrainConfig& c) {
      llama(c).weights = "runs/base";
      c.model.lora = {.rank = 4, .dropout = dropout};
      c.parallel.tp = 2;
    };
  };
  EXPECT_EQ(problems_after(shared(0), 2), "");
  EXPECT_EQ(problems_after(shared(0.1), 2), "");
}

TEST(CheckConfig, WantsNamesThatCanBeFolders) {
  EXPECT_NE(problems_after([](TrainConfig& c) {
              c.run_name = "a/b";
            }).find("run_name: \"a/b\" is not a valid folder name"),
            std::string::npos);
  EXPECT_NE(problems_after([](TrainConfig& c) { c.run_name = ""; }), "");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.run_dir = "runs/{name}"; }),
            "run_dir: \"runs/{name}\": only {run_name} can be in braces");
  EXPECT_NE(problems_after([](TrainConfig& c) { c.run_dir = "{run_name}/{x}"; }), "");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.run_dir = "/{run_name}/{run_name}"; }), "");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.run_dir = ""; }),
            "run_dir: is empty: write a folder, such as \"runs/{run_name}\"");
  EXPECT_NE(problems_after([](TrainConfig& c) { c.resume = ""; }), "");
}

TEST(CheckConfig, ReportsAllProblemsAtOnce) {
  const std::string text = problems_after([](TrainConfig& c) {
    llama(c).heads = 6, llama(c).kv_heads = 4, llama(c).max_seq_len = 8;
    c.global_batch = Duration::parse("1.5sp");
    c.max_duration = Duration::parse("1.5ba");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

TEST(CheckConfig, RefusesSizesThatNoMachineHas) {
  EXPECT_EQ(problems_after([](TrainConfig& c) { llama(c).layers = 9007199254740991; }),
            "model.layers: 9007199254740991 is more than Tycho can plan; write at most 16384");
  for (const char* batch : {"1e300sp", "1e300tok", "9e15sp"}) {
    EXPECT_NE(problems_after([&](TrainConfig& c) { c.global_batch = Duration::parse(batch); }), "");
  }
  EXPECT_NE(problems_after([](TrainConfig& c) { c.max_duration = Duration::parse("1e300tok"); }), "");
  EXPECT_NE(problems_after([](TrainConfig& c) { c.seq_len = 9007199254740991; }), "");
}

TEST(CheckConfig, WantsDataForEvaluation) {
  const auto missing = [](const char* key) {
    return std::string("eval.") + key +
           ": has no effect without eval_data; set eval_data.val = t.data.mds { local_dir = ..., split = "
           "\"val\" }";
  };
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.eval.every = Duration::parse("5ba"); }), missing("every"));
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.eval.first = true; }), missing("first"));
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.eval.batches = 3; }), missing("batches"));
  const auto with_data = [](const char* every, int64_t batches) {
    return [every, batches](TrainConfig& c) {
      c.eval_data["val"] = c.train_data;
      c.eval = {.every = Duration::parse(every), .batches = batches};
    };
  };
  EXPECT_EQ(problems_after(with_data("0.5ep", 10)), "");
  EXPECT_EQ(problems_after(with_data("2dur", 0)),
            "eval.every: 2dur is more than the whole run; write at most 1dur");
  EXPECT_EQ(problems_after(with_data("5ba", 1LL << 40)),
            "eval.batches: 1099511627776 is more than Tycho can plan; write at most 1073741824");
}

TEST(CheckConfig, SetsHaveNamesThatMetricsCanHave) {
  const auto named = [](const std::string& name) {
    return problems_after([&](TrainConfig& c) { c.eval_data[name] = c.train_data; });
  };
  for (const char* name : {"c4", "val_small", "en-2024", "0", "losses", "all"}) EXPECT_EQ(named(name), "");
  for (const std::string name :
       {"loss", "perplexity", "bits_per_byte", "tokens", "seconds", "step", "best", "total"})
    EXPECT_EQ(named(name), "eval_data." + name + ": no set can be called " + name + ": eval." + name +
                               " is a metric over all sets; choose another name");
  for (const std::string name : {"", "a.b", "a b", "\xc3\xa4", "c4/en"})
    EXPECT_EQ(named(name), "eval_data." + name + ": \"" + name +
                               "\" is not a valid name of a set, which is part of metrics such as "
                               "eval.NAME.loss: write letters, digits, \"_\" and \"-\"");
}

TEST(CheckConfig, CallbacksThatActOnEvaluationsNameAMetricThatIsThere) {
  const auto with = [](const std::vector<std::string>& sets, const std::string& metric) {
    return problems_after([&](TrainConfig& c) {
      for (const std::string& name : sets) c.eval_data[name] = c.train_data;
      EarlyStopConfig stop;
      CheckpointBestConfig best;
      stop.metric = best.metric = metric;
      c.callbacks["best"].value = best;
      c.callbacks["stop"].value = stop;
    });
  };
  for (const char* metric : {"eval.loss", "eval.perplexity", "eval.c4.loss", "eval.code.perplexity"})
    EXPECT_EQ(with({"c4", "code"}, metric), "") << metric;
  EXPECT_EQ(with({}, "eval.loss"),
            "callbacks.best: runs after evaluations, but there are none; set eval_data.NAME and eval.every\n"
            "callbacks.stop: runs after evaluations, but there are none; set eval_data.NAME and eval.every");
  for (const std::string metric : {"eval.books.loss", "eval.c4.tokens", "loss", "eval.", ""}) {
    const std::string said =
        ".metric: \"" + metric +
        "\" is not a metric of these evaluations; available: eval.loss, eval.perplexity, "
        "eval.c4.loss, eval.c4.perplexity";
    EXPECT_EQ(with({"c4"}, metric), "callbacks.best" + said + "\ncallbacks.stop" + said);
  }
}

TEST(CheckConfig, BitsPerByteAreAMetricOfSetsWithATokenizer) {
  const auto with = [](const std::string& metric, const std::string& tokenizer) {
    return problems_after([&](TrainConfig& c) {
      c.eval_data["c4"] = c.train_data;
      c.tokenizer = tokenizer;
      c.callbacks["best"].value = CheckpointBestConfig{.metric = metric};
    });
  };
  for (const char* metric : {"eval.bits_per_byte", "eval.c4.bits_per_byte"}) {
    EXPECT_EQ(with(metric, "tokenizer.json"), "") << metric;
    const std::string why = with(metric, "");
    EXPECT_TRUE(
        why.ends_with("eval.c4.perplexity; bytes are known only with the tokenizer of the data: set "
                      "tokenizer = \"PATH/tokenizer.json\""))
        << why;
  }
  const std::string other = with("eval.books.bits_per_byte", "tokenizer.json");
  EXPECT_TRUE(other.ends_with("eval.c4.perplexity, eval.c4.bits_per_byte")) << other;
}

TEST(Batches, AreCountedInSequences) {
  TrainConfig config;
  EXPECT_EQ(global_batch_sequences(config), 8);
  config.global_batch = Duration::parse("65536tok");
  EXPECT_EQ(global_batch_sequences(config), 64);
}

TEST(Batches, MicroBatchesDefaultToPassesNear16384Tokens) {
  TrainConfig config;
  config.global_batch = Duration::parse("96sp");
  EXPECT_EQ(micro_batch_sequences(config), 16);     // 16 x 1024
  EXPECT_EQ(micro_batch_sequences(config, 3), 16);  // 32 on a rank
  EXPECT_EQ(micro_batch_sequences(config, 8), 12);  // 12 on a rank
  config.global_batch = Duration::parse("34sp");
  EXPECT_EQ(micro_batch_sequences(config), 2);  // 17 and 34 would be too long
  config.seq_len = 32768;
  EXPECT_EQ(micro_batch_sequences(config), 1);
  config.micro_batch = Duration::parse("17sp");
  EXPECT_EQ(micro_batch_sequences(config), 17);
}

TEST(Lengths, BecomeStepsRoundedUp) {
  TrainConfig config;  // 8 sequences of 1024 tokens
  const auto steps = [&](const char* length, int64_t num_samples = 0) {
    config.max_duration = Duration::parse(length);
    return total_steps(config, num_samples);
  };
  EXPECT_EQ(steps("100ba"), 100);
  EXPECT_EQ(steps("8192tok"), 1);
  EXPECT_EQ(steps("8193tok"), 2);
  EXPECT_EQ(steps("2e9tok"), 244141);  // 2e9 / 8192 = 244140.6
  EXPECT_EQ(steps("801sp"), 101);
  EXPECT_EQ(steps("1ep", 87), 10);  // the 7 samples at the end do not fill a batch
  EXPECT_EQ(steps("3ep", 87), 30);
  EXPECT_EQ(steps("0.25ep", 87), 3);
  EXPECT_EQ(steps("2ep", 0), 0);  // unknown
}

TEST(Lengths, OfPartsAreRealNumbersOfSteps) {
  TrainConfig config;
  const auto steps = [&](const char* length) { return in_steps(Duration::parse(length), config, 200, 80); };
  EXPECT_EQ(steps("7ba"), 7);
  EXPECT_EQ(steps("12sp"), 1.5);
  EXPECT_EQ(steps("4096tok"), 0.5);
  EXPECT_EQ(steps("0.1dur"), 20);
  EXPECT_EQ(steps("0.5ep"), 5);
  EXPECT_THROW(steps("10s"), Error);
}

TEST(RunFolderPath, FillsInTheName) {
  TrainConfig config;
  EXPECT_EQ(run_folder_path(config), "runs/run");
  config.run_name = "a{run_name}";
  config.run_dir = "/x/{run_name}/{run_name}";
  EXPECT_EQ(run_folder_path(config), "/x/a{run_name}/a{run_name}");
}

}  // namespace
}  // namespace tycho
