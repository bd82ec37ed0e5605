// One rank of the recipe's ranks, whose share of each batch it reads.
#include "host/bench/loader.h"

#include <algorithm>

#include "bindings/define/recipe.h"
#include "host/recipe_words.h"
#include "host/signals.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/measure/data_bench.h"

namespace tycho {
namespace {

RecipeRequest recipe_after_subverb(const Arguments& arguments) {
  word(arguments, 1, "a recipe");
  Arguments recipe = arguments;
  recipe.words.erase(recipe.words.begin());
  recipe.numbers.erase(recipe.numbers.begin());
  return recipe_request(recipe);
}

Json bench_json(const DataBenchReport& report, const LoaderShape& shape) {
  return {{"batches", report.batches},
          {"samples", report.samples},
          {"seq_len", shape.seq_len},
          {"tokens", report.tokens},
          {"open_s", report.open_s},
          {"seconds", report.seconds},
          {"cpu_s", report.cpu_s},
          {"wait_s", report.wait_s},
          {"longest_wait_s", report.longest_s},
          {"tokens_per_s", static_cast<double>(report.tokens) / report.seconds},
          {"tokens_per_cpu_s", static_cast<double>(report.tokens) / report.cpu_s},
          {"shards_opened", report.fetched.opened},
          {"shards_fetched", report.fetched.fetched},
          {"fetched_bytes", report.fetched.fetched_bytes}};
}

void print_bench(const DataConfig& data, const DataBenchReport& report, const LoaderShape& shape) {
  const auto tokens = static_cast<double>(report.tokens);
  const bool trimmed = report.tokens < report.samples * shape.seq_len;
  fmt::print("{}: {} batches of {} sequences of {}{} tokens in {:.2f} s\n", data.place(), report.batches,
             shape.global_sequences / shape.num_ranks, trimmed ? "up to " : "", shape.seq_len,
             report.seconds);
  fmt::print("speed     {} tokens/s; {} for each second of one core\n", human_count(tokens / report.seconds),
             human_count(tokens / report.cpu_s));
  fmt::print("start     {:.2f} s until the first batch\n", report.open_s);
  fmt::print("waiting   {:.1f} % of the time, longest {:.1f} ms: nothing here takes time but the data\n",
             100 * report.wait_s / report.seconds, 1e3 * report.longest_s);
  if (report.fetched.opened > 0)
    fmt::print("cache     {} shards opened, {} of them fetched ({})\n", report.fetched.opened,
               report.fetched.fetched, human_bytes(static_cast<double>(report.fetched.fetched_bytes)));
}

}  // namespace

int bench_data_verb(const Arguments& arguments) {
  const TrainConfig config = resolve_recipe(recipe_after_subverb(arguments)).config;
  LoaderShape shape{.seq_len = config.seq_len,
                    .global_sequences = global_batch_sequences(config),
                    .num_ranks = arguments.integer("ranks", 1, 1 << 20),
                    .vocab_size = config.model.vocab_size(),
                    .seed = static_cast<uint64_t>(config.seed),
                    .tokenizer = config.tokenizer,
                    .marks = reads_input(config.loss.terms(), "weight")};
  const DataBenchReport report =
      bench_data(config.train_data, shape, arguments.integer("batches", 0), stop_on_signals());
  if (report.batches == 0) fail(ExitCode::kInterrupted, "[bench] stopped before the second batch");
  if (arguments.has("json"))
    fmt::print("{}\n", bench_json(report, shape).dump(2));
  else
    print_bench(config.train_data, report, shape);
  return 0;
}

}  // namespace tycho
