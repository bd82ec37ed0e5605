// The rules between the fields of a config, and its arithmetic.
#include "trainer/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/json_writer.h"
#include "trainer/idle_keys.h"
#include "trainer/models/rules.h"
#include "trainer/optim/schedule.h"

namespace tycho {
namespace {

constexpr int64_t kTokensPerPass = 16384;
const std::string kRunName = "{run_name}";

using Problems = std::vector<ConfigProblem>;

template <class... Args>
void add(Problems& problems, const char* path, fmt::format_string<Args...> format, Args&&... args) {
  problems.push_back({path, fmt::format(format, std::forward<Args>(args)...)});
}

bool is_whole(const Duration& duration) { return duration.value == std::floor(duration.value); }

/// The multiple of `step` that is nearest to x, at least one step.
int64_t nearest_multiple(int64_t x, int64_t step) {
  return std::max<int64_t>(1, (x + step / 2) / step) * step;
}

std::string with_run_name(std::string path, const std::string& run_name) {
  for (size_t at = path.find(kRunName); at != std::string::npos;
       at = path.find(kRunName, at + run_name.size())) {
    path.replace(at, kRunName.size(), run_name);
  }
  return path;
}

/// Yes and no are what other systems take; neither is the path of a checkpoint.
void check_resume(const std::string& resume, Problems& problems) {
  if (resume.empty())
    return add(problems, "resume", "is empty: write \"auto\", \"none\" or the path of a checkpoint");
  std::string word = resume;
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* taken : {"auto", "none", "true", "false", "yes", "no", "on", "off"})
    if (word == taken && resume != "auto" && resume != "none")
      add(problems, "resume",
          "wanted \"auto\" (go on from the newest checkpoint of the run, or start), \"none\" (start over) or "
          "the "
          "path of a checkpoint, given \"{}\"",
          resume);
}

void check_names(const TrainConfig& config, Problems& problems) {
  if (config.run_name.empty() || config.run_name == "." || config.run_name == ".." ||
      config.run_name.find('/') != std::string::npos) {
    add(problems, "run_name", "\"{}\" cannot be the name of a folder: write a name without \"/\"",
        config.run_name);
  }
  if (config.run_dir.empty()) {
    add(problems, "run_dir", "is empty: write a folder, such as \"runs/{{run_name}}\"");
  } else if (with_run_name(config.run_dir, "").find_first_of("{}") != std::string::npos) {
    add(problems, "run_dir", "\"{}\": the only word that can stand in braces is {{run_name}}",
        config.run_dir);
  }
  check_resume(config.resume, problems);
}

/// Lengths whose products would not fit into 64 bits, or whose plan would not fit into memory.
void check_sizes(const TrainConfig& config, Problems& problems) {
  const auto at_most = [&](const char* path, double value, double limit) {
    if (value > limit) add(problems, path, "{} is more than Tycho can plan; write at most {}", value, limit);
  };
  at_most("seq_len", static_cast<double>(config.seq_len), 0x1p24);
  at_most("global_batch", config.global_batch.value, 0x1p30);
  at_most("max_duration", config.max_duration.value, 0x1p53);
  at_most("eval.batches", static_cast<double>(config.eval.batches), 0x1p30);
}

void check_master(const TrainConfig& config, Problems& problems) {
  if (config.precision == Precision::kFp32 && config.master_weights != MasterWeights::kFp32)
    add(problems, "master_weights", "{} is for bf16, and precision is fp32; set precision = \"bf16\"",
        enum_name(config.master_weights));
}

void check_sequence(const TrainConfig& config, Problems& problems) {
  const auto longest = std::visit([](const auto& model) { return std::optional<int64_t>(model.max_seq_len); },
                                  config.model.value);
  if (longest && config.seq_len > *longest) {
    add(problems, "seq_len",
        "{} is longer than model.max_seq_len = {}; shorten it to {} or raise max_seq_len", config.seq_len,
        *longest, *longest);
  }
}

/// global_batch as whole sequences. False when that is not what it is.
bool check_global_batch(const TrainConfig& config, Problems& problems) {
  const Duration& batch = config.global_batch;
  if (!is_whole(batch)) {
    add(problems, "global_batch", "{} is not a whole number; write {}{}", batch.str(), std::ceil(batch.value),
        unit_name(batch.unit));
    return false;
  }
  if (batch.unit == DurationUnit::kToken && batch.count() % config.seq_len != 0) {
    add(problems, "global_batch", "{} is not a multiple of seq_len = {} tokens; write {}tok", batch.str(),
        config.seq_len, nearest_multiple(batch.count(), config.seq_len));
    return false;
  }
  return true;
}

void check_batch_split(const TrainConfig& config, int64_t num_ranks, Problems& problems) {
  const int64_t sequences = global_batch_sequences(config);
  if (sequences % num_ranks != 0) {
    add(problems, "global_batch", "{} sequences cannot be shared by {} ranks; write {}sp", sequences,
        num_ranks, nearest_multiple(sequences, num_ranks));
    return;
  }
  if (!config.micro_batch) return;
  const int64_t per_rank = sequences / num_ranks;
  if (!is_whole(*config.micro_batch)) {
    add(problems, "micro_batch", "{} is not a whole number of sequences", config.micro_batch->str());
  } else if (config.micro_batch->count() > per_rank) {
    add(problems, "micro_batch", "{} is more than the {} sequences of a step{}; write {}sp",
        config.micro_batch->str(), per_rank, num_ranks == 1 ? "" : " on each rank", per_rank);
  }
}

void check_parts(const std::vector<ScheduleLength>& parts, Problems& problems) {
  for (const auto& [path, part] : parts) {
    if (part.unit == DurationUnit::kFraction && part.value > 1) {
      add(problems, path, "{} is more than the whole run; write at most 1dur", part.str());
    }
  }
}

void check_durations(const TrainConfig& config, Problems& problems) {
  const Duration& length = config.max_duration;
  if (length.unit != DurationUnit::kEpoch && !is_whole(length)) {
    add(problems, "max_duration", "{} is not a whole number; write {}{}", length.str(),
        std::ceil(length.value), unit_name(length.unit));
    return;
  }
  std::vector<ScheduleLength> parts = schedule_lengths(config.scheduler);
  parts.push_back({"ckpt.every", config.ckpt.every});
  parts.push_back({"log.every", config.log.every});
  if (config.eval.every) parts.push_back({"eval.every", *config.eval.every});
  check_parts(parts, problems);
}

/// True when no event of a callback of one's own has a function.
bool hears_nothing(const OwnCallback& callback) {
  const Json all = to_json(callback);
  return std::none_of(all.begin(), all.end(), [](const Json& value) { return is_function_ref(value); });
}

/// What acts on evaluations needs some, and a metric that they have.
void check_eval_callback(const TrainConfig& config, const std::string& path, const std::string& metric,
                         Problems& problems) {
  const std::vector<std::string> known = eval_metrics(config.eval_data);
  if (known.empty())
    problems.push_back(
        {path, "acts after evaluations, and there are none; set eval_data.NAME and eval.every"});
  else if (std::find(known.begin(), known.end(), metric) == known.end())
    problems.push_back(
        {path + ".metric", fmt::format("\"{}\" is no metric of these evaluations; there are {}", metric,
                                       fmt::join(known, ", "))});
}

/// Lengths of callbacks are parts of the run.
void check_callbacks(const TrainConfig& config, Problems& problems) {
  for (const auto& [name, callback] : config.callbacks) {
    const CallbackOptions& options = callback_options(callback);
    const std::string path = "callbacks." + name;
    const std::string every = path + ".every", from = path + ".from", until = path + ".until_",
                      at = path + ".at";
    std::vector<ScheduleLength> parts;
    if (options.every) parts.push_back({every.c_str(), *options.every});
    if (options.from) parts.push_back({from.c_str(), *options.from});
    if (options.until_) parts.push_back({until.c_str(), *options.until_});
    for (const Duration& moment : options.at) parts.push_back({at.c_str(), moment});
    check_parts(parts, problems);
    std::visit(
        [&](const auto& kind) {
          if constexpr (std::derived_from<std::decay_t<decltype(kind)>, OwnCallback>)
            if (hears_nothing(kind))
              add(problems, path.c_str(),
                  "hears nothing: write batch_end = function(ctx) ... end, or another event");
        },
        callback.value);
    if (const auto* stop = std::get_if<EarlyStopConfig>(&callback.value))
      check_eval_callback(config, path, stop->metric, problems);
    if (const auto* best = std::get_if<CheckpointBestConfig>(&callback.value)) {
      check_eval_callback(config, path, best->metric, problems);
      if (!is_tag(best->tag))
        problems.push_back({path + ".tag", fmt::format("\"{}\" cannot be the name of a checkpoint: write a "
                                                       "name without \"/\"",
                                                       best->tag)});
    }
    if (callback.is<GenerateSamplesConfig>() && config.tokenizer.empty())
      add(problems, path.c_str(),
          "writes text, and there is no tokenizer; set tokenizer = \"PATH/tokenizer.json\"");
  }
}

void check_eval(const TrainConfig& config, Problems& problems) {
  const EvalConfig& eval = config.eval;
  if (config.eval_data.empty() && (eval.every || eval.first || eval.batches > 0))
    add(problems,
        eval.every   ? "eval.every"
        : eval.first ? "eval.first"
                     : "eval.batches",
        "does nothing without eval_data; set eval_data.val = t.data.mds {{ local_dir = ..., split = \"val\" "
        "}}");
}

void check_set_names(const TrainConfig& config, Problems& problems) {
  for (const auto& [name, data] : config.eval_data)
    if (std::string problem = eval_name_problem(name); !problem.empty())
      problems.push_back({"eval_data." + name, std::move(problem)});
}

void check_separators(const MdsConfig& data, const std::string& path, int64_t vocab_size,
                      Problems& problems) {
  if (data.eos_token_id && data.bos_token_id)
    problems.push_back(
        {path + ".bos_token_id",
         "cannot go with eos_token_id: documents end with a token or begin with one; leave one "
         "out"});
  for (const auto& [key, id] : {std::pair(".eos_token_id", data.eos_token_id),
                                {".bos_token_id", data.bos_token_id},
                                {".pad_token_id", data.pad_token_id}})
    if (id.value_or(0) >= vocab_size)
      problems.push_back(
          {path + key, fmt::format("{} is outside the model's vocabulary of {}", *id, vocab_size)});
}

void check_chat(const ChatConfig& data, const std::string& path, const TrainConfig& config,
                int64_t vocab_size, Problems& problems) {
  if (data.path.empty()) problems.push_back({path + ".path", "is empty: write a .jsonl or a folder of them"});
  if (data.min_target_prompt > 0 && data.target_prompts != TargetPrompts::kAll)
    problems.push_back(
        {path + ".min_target_prompt", "does nothing unless target_prompts = \"all\"; leave it out"});
  if (data.eos_token_id.value_or(0) >= vocab_size)
    problems.push_back({path + ".eos_token_id", fmt::format("{} is outside the model's vocabulary of {}",
                                                            *data.eos_token_id, vocab_size)});
  if (config.tokenizer.empty())
    add(problems, "tokenizer", "is missing, and {} is text: set tokenizer = \"PATH/tokenizer.json\"", path);
}

/// What is evaluated sees as much of a row as what is trained on.
void check_same_documents(const MdsConfig& train, const MdsConfig& eval, const std::string& path,
                          Problems& problems) {
  const auto same = [&](const char* key, std::optional<int64_t> wanted, std::optional<int64_t> given) {
    const auto text = [](std::optional<int64_t> id) { return id ? std::to_string(*id) : "nothing"; };
    if (wanted != given)
      add(problems, (path + key).c_str(),
          "is {}, train_data's is {}: losses of the two would not compare; write the same", text(given),
          text(wanted));
  };
  same(".eos_token_id", train.eos_token_id, eval.eos_token_id);
  same(".bos_token_id", train.bos_token_id, eval.bos_token_id);
  same(".pad_token_id", train.pad_token_id, eval.pad_token_id);
}

void check_data(const TrainConfig& config, Problems& problems) {
  const int64_t vocab_size =
      std::visit([](const auto& model) { return model.vocab_size; }, config.model.value);
  const auto check = [&](const DataConfig& data, const std::string& path) {
    if (data.is<ChatConfig>()) return check_chat(data.as<ChatConfig>(), path, config, vocab_size, problems);
    check_separators(data.as<MdsConfig>(), path, vocab_size, problems);
  };
  check(config.train_data, "train_data");
  for (const auto& [name, data] : config.eval_data) {
    const std::string path = "eval_data." + name;
    check(data, path);
    if (data.is<MdsConfig>() && data.as<MdsConfig>().epoch_size)
      problems.push_back(
          {path + ".epoch_size", "does nothing in an evaluation; eval.batches says how much is read"});
    if (config.train_data.is<MdsConfig>() && data.is<MdsConfig>())
      check_same_documents(config.train_data.as<MdsConfig>(), data.as<MdsConfig>(), path, problems);
  }
}

/// How long a run of epochs is, only the data tells.
void check_schedule(const TrainConfig& config, Problems& problems) {
  if (config.max_duration.unit == DurationUnit::kEpoch) return;
  const Problems found = schedule_problems(config, total_steps(config, 0), 0);
  problems.insert(problems.end(), found.begin(), found.end());
}

}  // namespace

std::vector<ConfigProblem> check_model(const TrainConfig& config) {
  Problems problems = model_problems(config.model);
  check_sequence(config, problems);
  return problems;
}

std::vector<ConfigProblem> check_evaluation(const TrainConfig& config) {
  Problems problems;
  check_sizes(config, problems);
  if (!problems.empty()) return problems;
  problems = check_model(config);
  check_set_names(config, problems);
  check_data(config, problems);
  if (check_global_batch(config, problems)) check_batch_split(config, /*num_ranks=*/1, problems);
  return problems;
}

std::vector<ConfigProblem> check_config(const TrainConfig& config, int64_t num_ranks) {
  Problems problems;
  check_names(config, problems);
  check_sizes(config, problems);
  if (!problems.empty()) return problems;
  problems = check_model(config);
  check_master(config, problems);
  check_eval(config, problems);
  check_set_names(config, problems);
  check_callbacks(config, problems);
  check_data(config, problems);
  const Problems idle = idle_keys(config);
  problems.insert(problems.end(), idle.begin(), idle.end());
  const bool whole_batch = check_global_batch(config, problems);
  if (whole_batch) check_batch_split(config, num_ranks, problems);
  const size_t before = problems.size();
  check_durations(config, problems);
  if (whole_batch && problems.size() == before) check_schedule(config, problems);
  return problems;
}

int64_t global_batch_sequences(const TrainConfig& config) {
  const int64_t count = config.global_batch.count();
  return config.global_batch.unit == DurationUnit::kToken ? count / config.seq_len : count;
}

int64_t micro_batch_sequences(const TrainConfig& config, int64_t num_ranks) {
  if (config.micro_batch) return config.micro_batch->count();
  return largest_divisor(global_batch_sequences(config) / num_ranks, kTokensPerPass / config.seq_len);
}

int64_t total_steps(const TrainConfig& config, int64_t num_samples) {
  // A whole number of steps may come out as 4800.0000000001.
  const double steps = in_steps(config.max_duration, config, 0, num_samples);
  const double whole = std::round(steps);
  return static_cast<int64_t>(std::abs(steps - whole) <= steps * 1e-12 ? whole : std::ceil(steps));
}

double in_steps(const Duration& duration, const TrainConfig& config, int64_t total_steps,
                int64_t num_samples) {
  const int64_t sequences = global_batch_sequences(config);
  switch (duration.unit) {
    case DurationUnit::kBatch: return duration.value;
    case DurationUnit::kSample: return duration.value / static_cast<double>(sequences);
    case DurationUnit::kToken: return duration.value / static_cast<double>(sequences * config.seq_len);
    case DurationUnit::kFraction: return duration.value * static_cast<double>(total_steps);
    // The loader leaves out the samples at the end of an epoch that do not fill a batch.
    case DurationUnit::kEpoch: return duration.value * static_cast<double>(num_samples / sequences);
    case DurationUnit::kSecond: break;
  }
  fail(ExitCode::kRecipe,
       "[config] {} is time on the clock, which is no number of steps; use ba, tok, sp, ep or dur",
       duration.str());
}

std::string run_folder_path(const TrainConfig& config) {
  return with_run_name(config.run_dir, config.run_name);
}

}  // namespace tycho
