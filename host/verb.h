// The verbs of the command line, and how each describes itself.
#pragma once
#include <utility>
#include <vector>

#include "host/arguments.h"

namespace tycho {

/// One option of a verb.
struct OptionSpec {
  const char* name;                    // "top-p", or "p,prompt" with a short form
  const char* help;                    // one sentence
  const char* placeholder = nullptr;   // "N"; nullptr for a switch
  const char* default_text = nullptr;  // nullptr: the option has no value unless it is given
  const char* bare_text = nullptr;     // value when given without one; other values are written --name=VALUE
};

/// Options with the same meaning for every verb.
inline constexpr OptionSpec kJsonOption = {"json", "Print JSON instead of text."};
inline constexpr OptionSpec kEmaOption = {
    "ema", "Of a run with a moving average of the weights (ema): take the average, not the trained weights."};
inline constexpr OptionSpec kTraceOption = {"trace", "Show where in Lua an error was raised."};

/// Describes a verb; `--help` is made from it. A verb with "key=value" in its usage takes overrides, which
/// may also be written --set key=value and --unset key.
struct VerbSpec {
  const char* usage;    // "run RECIPE [key=value ...]"
  const char* summary;  // one sentence
  const char* example;  // one command line or more
  std::vector<OptionSpec> options;
  bool passes_on = false;  // options end at the first word, which begins another verb's command
};

/// A verb and its function.
struct Verb {
  const char* name;
  const VerbSpec& spec;
  /// Returns the exit code of an orderly end; throws Error otherwise.
  int (*run)(const Arguments& arguments);
};

/// Returns true for a verb of recipes, whose words may be overrides.
bool takes_overrides(const Verb& verb);

/// Returns the options that the help of a verb lists, which include --set and --unset.
std::vector<OptionSpec> shown_options(const Verb& verb);

/// All verbs, in the order of `tycho --help`.
const std::vector<Verb>& all_verbs();

/// Calls the function that the first word names. Throws Error (kUsage) with a suggestion for other words.
using Subverb = std::pair<const char*, int (*)(const Arguments&)>;
int pick_subverb(const Arguments& arguments, const char* verb, const std::vector<Subverb>& subverbs);

int run_run(const Arguments& arguments);
int run_rerun(const Arguments& arguments);
int run_launch(const Arguments& arguments);
int run_log(const Arguments& arguments);
int run_ls(const Arguments& arguments);
int run_attach(const Arguments& arguments);
int run_ctl(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_check(const Arguments& arguments);
int run_completion(const Arguments& arguments);
int run_config(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_repl(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_diff(const Arguments& arguments);
int run_init(const Arguments& arguments);
int run_import(const Arguments& arguments);
int run_test(const Arguments& arguments);
int run_fetch(const Arguments& arguments);
int run_schema(const Arguments& arguments);
int run_types(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_chat(const Arguments& arguments);
int run_convert(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_sweep(const Arguments& arguments);
int run_ckpt(const Arguments& arguments);
int run_version(const Arguments& arguments);
extern const VerbSpec kAttachSpec, kBenchSpec, kChatSpec, kCtlSpec, kRunSpec, kRerunSpec, kDiffSpec,
    kInitSpec, kImportSpec, kCheckSpec, kCompletionSpec, kTypesSpec, kFetchSpec, kConfigSpec, kSchemaSpec,
    kPlanSpec, kReplSpec, kReportSpec, kLogSpec, kSweepSpec, kTestSpec, kDataSpec, kTokenizerSpec,
    kLaunchSpec, kLsSpec, kEvalSpec, kGenerateSpec, kConvertSpec, kCkptSpec, kDoctorSpec, kVersionSpec;

}  // namespace tycho
