// tycho eval: evaluates a checkpoint.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "bindings/define/recipe.h"
#include "host/engine.h"
#include "host/follow_run.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/error.h"
#include "trainer/base/text/json_number.h"

namespace tycho {

const VerbSpec kEvalSpec = {
    "eval RUN_OR_FOLDER [--data DIR | --icl FILE | --loglikelihood]",
    "Prints the loss and the perplexity of a trained model (a run, a checkpoint, a Hugging Face folder or a "
    "model of the hub) on its recipe's eval_data, or on other data.",
    "  tycho eval runs/demo\n"
    "  tycho eval runs/demo --data runs/demo-data --split val\n"
    "  tycho eval runs/demo --icl tasks.lua\n"
    "  tycho eval hf://Qwen/Qwen3-0.6B --icl tasks.lua\n"
    "  tycho eval runs/demo --loglikelihood < requests.jsonl\n"
    "  tycho eval runs/demo --follow                    # every checkpoint of a run in another process",
    {{"data",
      "Folder of MDS shards, with a folder for each split; or a .jsonl of conversations. Default: the "
      "recipe's eval_data.",
      "DIR"},
     {"split", "Folder inside --data that holds index.json; '' for --data itself.", "NAME", "val"},
     {"batches",
      "Number of batches of the recipe's global_batch to take from the start; 0 takes all. Default: all of "
      "--data, or eval.batches for the recipe's sets.",
      "N"},
     {"icl", "Measure in-context tasks instead: a Lua file that returns a table like the recipe's key icl.",
      "FILE"},
     {"loglikelihood",
      "Answer requests of lm-evaluation-harness instead: read {\"context\", \"continuation\"} lines, write "
      "{\"logprob\", \"is_greedy\"} lines."},
     {"without-added-tokens",
      "With --loglikelihood: put nothing before and after texts, not even what the tokenizer adds to them, "
      "as the harness does with add_bos_token=False, and did until 0.4.8."},
     kEmaOption,
     {"follow",
      "Evaluate every checkpoint of a run, and wait for more until the run ends; the numbers go to "
      "evals.jsonl in its folder."},
     {"threads", "CPU threads; 0 for one per core.", "N", "0"},
     {"device", "auto, cpu or cuda.", "NAME", "auto"},
     kJsonOption,
     kTraceOption}};

namespace {

EvalRequest request_of(const Arguments& arguments) {
  EvalRequest request;
  request.path = word(arguments, 0, kTrainedModel);
  no_more_words(arguments, 1);
  if (arguments.has("data")) request.data_dir = arguments.text("data");
  if (request.data_dir.empty() && !arguments.all("split").empty())
    fail(ExitCode::kUsage, "[eval] --split is a folder inside --data, but --data is not given");
  request.split = arguments.text("split");
  if (arguments.has("batches")) request.batches = arguments.integer("batches", 0, 1 << 30);
  request.ema = arguments.has("ema");
  request.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  request.device = arguments.text("device");
  return request;
}

/// Prints which checkpoint was evaluated.
void print_checkpoint(const std::string& checkpoint, int64_t step, bool ema) {
  fmt::print("{}: step {}{}\n", checkpoint, step, ema ? ", average of the weights" : "");
}

Json checkpoint_json(const std::string& checkpoint, int64_t step, bool ema) {
  Json json = {{"checkpoint", checkpoint}, {"step", step}};
  if (ema) json["weights"] = "ema";
  return json;
}

/// Prints warnings. A number that is not finite does not fail the verb, since the next set or checkpoint may
/// be finite.
void warn_of(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

std::string line_of(const EvalResult& result) {
  const std::optional<double> bits = result.bits_per_byte();
  return fmt::format("loss {:.6f}  perplexity {:.4f}  {}{} tokens  {:.1f} s", result.loss, result.perplexity,
                     bits ? fmt::format("{:.4f} bits per byte  ", *bits) : "", result.tokens, result.seconds);
}

/// Prints one line for data given by the user; for sets a row each, and the total when there is more than
/// one.
void print_lines(const EvalAnswer& answer, bool ema) {
  print_checkpoint(answer.checkpoint, answer.step, ema);
  if (answer.results.contains("")) return fmt::print("{}\n", line_of(answer.results.at("")));
  const bool with_total = answer.results.size() > 1;
  size_t width = with_total ? std::string("total").size() : 0;
  for (const auto& [name, result] : answer.results) width = std::max(width, name.size());
  for (const auto& [name, result] : answer.results) fmt::print("{:<{}}  {}\n", name, width, line_of(result));
  if (with_total) fmt::print("{:<{}}  {}\n", "total", width, line_of(total_of(answer.results)));
}

void print_json(const EvalAnswer& answer, bool ema) {
  Json json = checkpoint_json(answer.checkpoint, answer.step, ema);
  json.update(eval_json(total_of(answer.results)));
  for (const auto& [name, result] : answer.results)
    if (!name.empty()) json["sets"][name] = eval_json(result);
  fmt::print("{}\n", json.dump(2));
}

/// Makes the part of a request that all modes without evaluation data share. `mode` is the option of the
/// mode.
template <class Request>
Request without_data(const Arguments& arguments, const char* mode) {
  Request request;
  request.path = word(arguments, 0, kTrainedModel);
  no_more_words(arguments, 1);
  for (const char* other : {"data", "split", "batches"})
    if (!arguments.all(other).empty())
      fail(ExitCode::kUsage,
           "[eval] --{} is about data to evaluate on, and has no effect with --{}; remove one", other, mode);
  request.ema = arguments.has("ema");
  request.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  request.device = arguments.text("device");
  return request;
}

void print_tasks(const IclAnswer& answer, bool ema) {
  print_checkpoint(answer.checkpoint, answer.step, ema);
  size_t width = 0;
  for (const IclTaskResult& task : answer.results.tasks) width = std::max(width, task.name.size());
  for (const auto& [name, score] : answer.results.gauntlet) width = std::max(width, name.size());
  for (const IclTaskResult& task : answer.results.tasks)
    for (const auto& [metric, value] : task.metrics)
      fmt::print("{:<{}}  {:.4f}  {} of {} items\n", task.name, width, value, metric, task.items);
  for (const auto& [name, score] : answer.results.gauntlet)
    fmt::print("{:<{}}  {:.4f}  gauntlet\n", name, width, score);
  for (const std::string& name : answer.results.left_out)
    fmt::print("{:<{}}  left out: not all of its benchmarks are tasks\n", name, width);
}

int measure_tasks(const Arguments& arguments) {
  auto request = without_data<IclRequest>(arguments, "icl");
  request.tasks = read_tasks_file(arguments.text("icl"), arguments.has("trace"));
  if (request.tasks.tasks.empty())
    fail(ExitCode::kUsage, "[eval] {} has no tasks: return {{ tasks = {{ {{ label = ..., path = ... }} }} }}",
         arguments.text("icl"));
  const StopFlag& stop = stop_on_signals();
  const std::optional<IclAnswer> answer = open_engine(request.threads).measure_icl(request, stop);
  if (!answer) return 128 + stop;
  warn_of(not_finite_items(answer->results));
  if (!arguments.has("json")) return print_tasks(*answer, request.ema), 0;
  Json json = checkpoint_json(answer->checkpoint, answer->step, request.ema);
  json.update(icl_json(answer->results));
  for (const IclTaskResult& task : answer->results.tasks)
    if (!task.outputs.empty()) json["outputs"][task.name] = task.outputs;
  fmt::print("{}\n", json.dump(2));
  return 0;
}

/// Answers each line of standard input with a line, in the same order.
int answer_harness(const Arguments& arguments) {
  auto request = without_data<LoglikelihoodRequest>(arguments, "loglikelihood");
  if (isatty(STDIN_FILENO) != 0)
    fail(ExitCode::kUsage, "[eval] --loglikelihood reads requests from standard input: add < requests.jsonl");
  const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
  request.requests = read_harness_requests(text, "standard input");
  if (arguments.has("without-added-tokens")) request.encoding = HarnessEncoding::kPlain;
  const StopFlag& stop = stop_on_signals();
  const auto scores = open_engine(request.threads).loglikelihoods(request, stop);
  if (!scores) return 128 + stop;
  int64_t not_finite = 0;
  for (const ContinuationScore& score : *scores) {
    Json line = Json::object();
    set_number(line, "logprob", score.logprob);
    not_finite += line["logprob"].is_null();
    line["is_greedy"] = score.is_greedy;
    fmt::print("{}\n", line.dump());
  }
  if (not_finite > 0)
    warn_of(
        {fmt::format("{} of {} log-likelihoods are not finite: null, with \"inf\", \"-inf\" or \"nan\" as "
                     "not_finite.logprob beside it",
                     not_finite, scores->size())});
  return 0;
}

}  // namespace

int run_eval(const Arguments& arguments) {
  if (arguments.has("icl") && arguments.has("loglikelihood"))
    fail(ExitCode::kUsage, "[eval] --icl and --loglikelihood ask different things: give one of them");
  if (arguments.has("without-added-tokens") && !arguments.has("loglikelihood"))
    fail(ExitCode::kUsage,
         "[eval] --without-added-tokens says how requests are encoded: expected --loglikelihood beside it");
  if (arguments.has("icl")) return measure_tasks(arguments);
  if (arguments.has("loglikelihood")) return answer_harness(arguments);
  const EvalRequest request = request_of(arguments);
  const StopFlag& stop = stop_on_signals();
  if (arguments.has("follow")) return follow_evaluations(request, stop);
  const std::optional<EvalAnswer> answer = open_engine(request.threads).evaluate(request, stop);
  if (!answer) return 128 + stop;
  warn_of(not_finite_losses(answer->results, answer->checkpoint));
  if (arguments.has("json"))
    print_json(*answer, request.ema);
  else
    print_lines(*answer, request.ema);
  return 0;
}

}  // namespace tycho
