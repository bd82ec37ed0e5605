// Checks that the keys of a recipe fit each other.
#include "trainer/recipe/config_rules.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/expression/init_expression.h"
#include "trainer/families/check.h"
#include "trainer/recipe/canonical_order.h"
#include "trainer/recipe/chat_rows.h"
#include "trainer/recipe/context_parallel.h"
#include "trainer/recipe/data_stages.h"
#include "trainer/recipe/ema_steps.h"
#include "trainer/recipe/pipeline_parallel.h"
#include "trainer/recipe/run_name.h"
#include "trainer/recipe/schedule.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/recipe/tensor_parallel.h"

namespace tycho {
namespace {

bool is_whole(const Duration& duration) { return duration.value == std::floor(duration.value); }

/// Returns the multiple of `step` nearest to x, at least one step.
int64_t nearest_multiple(int64_t x, int64_t step) {
  return std::max<int64_t>(1, (x + step / 2) / step) * step;
}

/// Reports values of `resume` that other systems take (yes and no), which are no path of a checkpoint.
void check_resume(const std::string& resume, ConfigProblems& problems) {
  if (resume.empty())
    return problems.add("resume", "is empty: write \"auto\", \"none\" or the path of a checkpoint");
  std::string word = resume;
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* taken : {"auto", "none", "true", "false", "yes", "no", "on", "off"})
    if (word == taken && resume != "auto" && resume != "none")
      problems.add("resume",
                   "expected \"auto\" (resume from the newest checkpoint of the run, or start), \"none\" "
                   "(start over) or the path of a checkpoint, got \"{}\"",
                   resume);
}

void check_names(const TrainConfig& config, ConfigProblems& problems) {
  if (config.run_name.empty() || config.run_name == "." || config.run_name == ".." ||
      config.run_name.find('/') != std::string::npos) {
    problems.add("run_name", "\"{}\" is not a valid folder name: write a name without \"/\"",
                 config.run_name);
  }
  if (config.run_dir.empty()) {
    problems.add("run_dir", "is empty: write a folder, such as \"runs/{{run_name}}\"");
  } else if (has_other_braces(config.run_dir)) {
    problems.add("run_dir", "\"{}\": only {{run_name}} can be in braces", config.run_dir);
  }
  check_resume(config.resume, problems);
}

/// Reports lengths whose products would not fit into 64 bits, or whose plan would not fit into memory.
void check_sizes(const TrainConfig& config, ConfigProblems& problems) {
  problems.at_most("seq_len", static_cast<double>(config.seq_len), 0x1p24);
  problems.at_most("global_batch", config.global_batch.value, 0x1p30);
  problems.at_most("max_duration", config.max_duration.value, 0x1p53);
  problems.at_most("eval.batches", static_cast<double>(config.eval.batches), 0x1p30);
}

/// Reports terms that are no expressions of a token. Those of Lua were checked there, with their lines.
void check_loss(const LossConfig& loss, ConfigProblems& problems) {
  if (loss.is<DefinedLossConfig>() && loss.terms().empty())
    problems.add("loss", "has no terms: give t.loss.define a function, or a table of functions");
  try {
    loss_expression(loss.terms(), /*with_gradients=*/true);
  } catch (const Error& error) {
    problems.add("loss", "{}", error.what());
  }
}

/// Reports what a family begins with where the recipe says it: MPT's default_ draws biases, too.
template <class Family>
void check_family_init(const Family& model, ConfigProblems& problems) {
  const Family usual;
  constexpr const char* kBeside = "together with init, which replaces it";
  problems.idle("init", true, model.weights.empty(),
                "together with model.weights, which replace the initialisation");
  if constexpr (requires { model.init_std; })
    problems.idle("model.init_std", model.init_std != usual.init_std, false, kBeside);
  if constexpr (requires { model.init.name; })
    problems.idle("model.init", !(model.init == usual.init), model.init.name == InitScheme::kDefault,
                  kBeside);
  else if constexpr (requires { model.init; })
    problems.idle("model.init", model.init != usual.init, false, kBeside);
}

/// Reports values that are no expressions of drawn numbers. Those of Lua were checked there, with their
/// lines.
void check_init(const TrainConfig& config, ConfigProblems& problems) {
  const auto* defined = std::get_if<DefinedInitConfig>(&config.init.value);
  if (defined == nullptr) return;
  std::visit([&](const auto& family) { check_family_init(family, problems); }, config.model.value);
  try {
    for (const InitFormula& formula : defined->formulas) init_expression(formula.expression);
  } catch (const Error& error) {
    problems.add("init", "{}", error.what());
  }
}

void check_master(const TrainConfig& config, ConfigProblems& problems) {
  if (config.precision == Precision::kFp32 && config.master_weights != MasterWeights::kFp32)
    problems.add("master_weights", "{} needs bf16, but precision is fp32; set precision = \"bf16\"",
                 enum_name(config.master_weights));
}

void check_fp8(const TrainConfig& config, ConfigProblems& problems) {
  const Fp8Config& fp8 = config.model.fp8;
  constexpr const char* kWithoutRecipe = "unless fp8.recipe is set";
  problems.idle("fp8.skip", !fp8.skip.empty(), fp8.is_used(), kWithoutRecipe);
  problems.idle("fp8.skip_small", fp8.skip_small, fp8.is_used(), kWithoutRecipe);
  problems.idle("fp8.gather", fp8.gather, fp8.is_used(), kWithoutRecipe);
  if (!fp8.is_used()) return;
  if (fp8.gather && fp8.recipe != Fp8Recipe::kTensorwise)
    problems.add("fp8.gather",
                 "needs one scale for each matrix, which {} does not have: remove it, or set fp8.recipe = "
                 "\"tensorwise\"",
                 enum_name(fp8.recipe));
  if (config.precision != Precision::kBf16)
    problems.add("fp8.recipe", "{} needs bf16, but precision is fp32; set precision = \"bf16\"",
                 enum_name(fp8.recipe));
}

void check_sequence(const TrainConfig& config, ConfigProblems& problems) {
  const auto longest = std::visit([](const auto& model) { return std::optional<int64_t>(model.max_seq_len); },
                                  config.model.value);
  if (longest && config.seq_len > *longest) {
    problems.add("seq_len", "{} is longer than model.max_seq_len = {}; shorten it to {} or raise max_seq_len",
                 config.seq_len, *longest, *longest);
  }
}

/// Checks that global_batch is a whole number of sequences; returns false otherwise.
bool check_global_batch(const TrainConfig& config, ConfigProblems& problems) {
  const Duration& batch = config.global_batch;
  if (!is_whole(batch)) {
    problems.add("global_batch", "{} is not a whole number; write {}{}", batch.str(), std::ceil(batch.value),
                 unit_name(batch.unit));
    return false;
  }
  if (batch.unit == DurationUnit::kToken && batch.count() % config.seq_len != 0) {
    problems.add("global_batch", "{} is not a multiple of seq_len = {} tokens; write {}tok", batch.str(),
                 config.seq_len, nearest_multiple(batch.count(), config.seq_len));
    return false;
  }
  return true;
}

void check_batch_split(const TrainConfig& config, int64_t num_ranks, ConfigProblems& problems) {
  const int64_t sequences = global_batch_sequences(config);
  if (sequences % num_ranks != 0) {
    problems.add("global_batch", "{} sequences cannot be divided evenly among {} ranks; write {}sp",
                 sequences, num_ranks, nearest_multiple(sequences, num_ranks));
    return;
  }
  if (!config.micro_batch || config.micro_batch->is_auto) return;
  const int64_t per_rank = sequences / num_ranks;
  if (!is_whole(*config.micro_batch)) {
    problems.add("micro_batch", "{} is not a whole number of sequences", config.micro_batch->str());
  } else if (config.micro_batch->count() > per_rank) {
    problems.add("micro_batch", "{} is more than the {} sequences of a step{}; write {}sp",
                 config.micro_batch->str(), per_rank, num_ranks == 1 ? "" : " on each rank", per_rank);
  }
}

void check_durations(const TrainConfig& config, ConfigProblems& problems) {
  const Duration& length = config.max_duration;
  if (length.unit != DurationUnit::kEpoch && !is_whole(length)) {
    problems.add("max_duration", "{} is not a whole number; write {}{}", length.str(),
                 std::ceil(length.value), unit_name(length.unit));
    return;
  }
  for (const auto& [path, part] : schedule_lengths(config.scheduler)) problems.within_run(path, part);
  problems.within_run("ckpt.every", config.ckpt.every);
  problems.within_run("log.every", config.log.every);
  if (config.log.loss_by_position) problems.within_run("log.loss_by_position", *config.log.loss_by_position);
  if (config.eval.every) problems.within_run("eval.every", *config.eval.every);
  if (config.icl.every) problems.within_run("icl.every", *config.icl.every);
}

void check_icl(const TrainConfig& config, ConfigProblems& problems) {
  check(config.icl, "icl", problems);
  if (!config.icl.tasks.empty() && config.tokenizer.empty())
    problems.add(
        "icl.tasks",
        "are text, but there is no tokenizer; set tokenizer = \"PATH/tokenizer.json\", the one of the data");
}

/// Checks lengths of the schedule against the run. Skips runs whose length only the data tells: epochs, and
/// tokens without padding.
void check_schedule(const TrainConfig& config, ConfigProblems& problems) {
  if (config.max_duration.unit == DurationUnit::kEpoch || counts_without_padding(config)) return;
  problems.add_all(schedule_problems(config, total_steps(config, 0), 0));
}

void check_data(const TrainConfig& config, ConfigProblems& problems) {
  const int64_t vocab_size = config.model.vocab_size();
  const bool has_tokenizer = !config.tokenizer.empty();
  check(config.train_data, "train_data", vocab_size, has_tokenizer, problems);
  check_sets(config.eval_data, config.train_data, vocab_size, has_tokenizer, problems);
  check_chat_rows(config, problems);
}

constexpr size_t kMostCallbacks = 1000;
constexpr int64_t kLeastLuaBytes = int64_t{16} << 20, kMostLuaBytes = int64_t{1} << 40;

void check_callbacks(const TrainConfig& config, ConfigProblems& problems) {
  if (config.lua_memory.value < kLeastLuaBytes || config.lua_memory.value > kMostLuaBytes)
    problems.add("lua_memory", "expected 16MiB to 1TiB, got {}", config.lua_memory.str());
  if (config.callbacks.size() > kMostCallbacks)
    return problems.add("callbacks", "expected at most {}, got {}; one callback can do several things",
                        kMostCallbacks, config.callbacks.size());
  const std::vector<std::string> metrics = eval_metrics(config.eval_data, !config.tokenizer.empty());
  for (const auto& [name, callback] : config.callbacks)
    check(callback, "callbacks." + name, metrics, !config.tokenizer.empty(), problems);
}

void check_network(const TrainConfig& config, ConfigProblems& problems) {
  check(config.model, problems);
  check_sequence(config, problems);
}

}  // namespace

std::vector<ConfigProblem> check_model(const TrainConfig& config) {
  ConfigProblems problems;
  check_network(config, problems);
  return problems.take();
}

std::vector<ConfigProblem> check_evaluation(const TrainConfig& config) {
  ConfigProblems problems;
  check_sizes(config, problems);
  if (!problems.empty()) return problems.take();
  check_network(config, problems);
  check_names(config.eval_data, problems);
  check_data(config, problems);
  if (check_global_batch(config, problems)) {
    check_batch_split(config, /*num_ranks=*/1, problems);
    check_packing_groups(config, problems);
  }
  return problems.take();
}

std::vector<ConfigProblem> check_config(const TrainConfig& config, std::optional<int64_t> num_ranks) {
  ConfigProblems problems;
  check_names(config, problems);
  check_checkpoints(config.ckpt, problems);
  check_sizes(config, problems);
  if (!problems.empty()) return problems.take();
  check_network(config, problems);
  check_master(config, problems);
  check_fp8(config, problems);
  check_loss(config.loss, problems);
  check_init(config, problems);
  check(config.eval, config.eval_data, problems);
  check_names(config.eval_data, problems);
  check_icl(config, problems);
  check_callbacks(config, problems);
  check_data(config, problems);
  check(config.optimizer, problems);
  check(config.guard, problems);
  check(config.clip, problems);
  check(config.recompute, problems);
  check(config.profile, problems);
  check(config.log, problems);
  check(config.machine, problems);
  const size_t before_mesh = problems.size();
  check(config.parallel, num_ranks, problems);
  const bool has_sizes = problems.size() == before_mesh, is_mesh = num_ranks && has_sizes;
  check_context_parallel(config, problems);
  if (has_sizes) check_pipeline(config, problems);
  const bool whole_batch = check_global_batch(config, problems);
  if (is_mesh) check_tensor_parallel(config, *num_ranks, problems);
  if (whole_batch)
    check_batch_split(config, is_mesh ? data_ranks(config.parallel, *num_ranks) : num_ranks.value_or(1),
                      problems);
  if (whole_batch) check_canonical_order(config, is_mesh ? num_ranks : std::nullopt, problems);
  if (whole_batch) check_packing_groups(config, problems);
  const size_t before = problems.size();
  check_durations(config, problems);
  if (whole_batch && problems.size() == before) check_stages(config, problems);
  if (whole_batch && problems.size() == before) check_schedule(config, problems);
  if (whole_batch && problems.size() == before) check_ema(config, problems);
  return problems.take();
}

}  // namespace tycho
