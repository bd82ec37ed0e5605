// One verb of the command line, and how its arguments are read.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bindings/define/recipe.h"

namespace tycho {

/// One option of a verb.
struct OptionSpec {
  const char* name;                    // "top-p", or "p,prompt" with a short form
  const char* help;                    // one sentence
  const char* placeholder = nullptr;   // "N"; none for a switch
  const char* default_text = nullptr;  // none: the option has no value when it is not given
  const char* bare_text = nullptr;  // its value when it is given without one; others are written --name=VALUE
};

/// --json and --trace mean the same everywhere.
inline constexpr OptionSpec kJsonOption = {"json", "Print JSON instead of text."};
inline constexpr OptionSpec kTraceOption = {"trace", "Show where in Lua an error was raised."};

/// How a verb describes itself; `--help` is made from it. A verb with "key=value" in its usage takes
/// overrides, and so has
/// --set key=value and --unset key as other spellings of them.
struct VerbSpec {
  const char* usage;    // "run RECIPE [key=value ...]"
  const char* summary;  // one sentence
  const char* example;  // one command line or more
  std::vector<OptionSpec> options;
  bool passes_on = false;  // options end at the first word: it and all after it belong to another verb
};

/// What follows the verb: options, and the words that are none, in order.
struct Arguments {
  std::string verb;
  std::map<std::string, std::string> options;             // by long name; a switch that was given is "true"
  std::map<std::string, std::vector<std::string>> given;  // the values of each, as often as it was given
  std::vector<std::string> words;
  std::vector<int> numbers;       // position of each word after the verb, from 1
  std::vector<std::string> argv;  // all of it, as given

  bool has(const std::string& option) const { return options.contains(option); }
  /// The value of an option that has a default or was given; throws Error (kUsage) that asks for it
  /// otherwise.
  const std::string& text(const std::string& option) const;
  /// Every value that was given, in order; none when the option was not.
  std::vector<std::string> all(const std::string& option) const;
  /// The value as a number from `low` to `high`; throws Error (kUsage) on anything else.
  int64_t integer(const std::string& option, int64_t low, int64_t high = INT64_MAX) const;
  double number(const std::string& option, double low, double high) const;
  /// The same, split at commas.
  std::vector<std::string> list(const std::string& option) const;
};

struct Verb {
  const char* name;
  const VerbSpec& spec;
  /// Returns the exit code of an orderly end; throws Error otherwise.
  int (*run)(const Arguments& arguments);
};

/// All verbs, in the order of `tycho --help`.
const std::vector<Verb>& all_verbs();

/// Reads what follows the verb. Throws Error (kUsage). True in `help` when the user asked for help and it was
/// printed.
Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& argv, bool& help);

/// True for key=value and its like, +key=value, ~key and @file.
bool is_override(const std::string& word);
/// The recipe and its pins from the words: the first that is no override is the file, all others are
/// overrides.
RecipeRequest recipe_words(const Arguments& arguments);
/// The same with a file of another system made into a recipe.
RecipeRequest recipe_request(const Arguments& arguments);
/// The word at an index; throws Error (kUsage) that names what is missing.
const std::string& word(const Arguments& arguments, size_t index, const char* what);
/// Throws Error (kUsage) when there are more words than the verb takes.
void no_more_words(const Arguments& arguments, size_t count);

/// The index of the first argument that is neither an option nor the value of one; their number when all are.
size_t first_word(const Verb& verb, const std::vector<std::string>& argv);

/// Calls what the first word names; throws Error (kUsage) with a suggestion for other words.
using Subverb = std::pair<const char*, int (*)(const Arguments&)>;
int pick_subverb(const Arguments& arguments, const char* verb, const std::vector<Subverb>& subverbs);

int run_run(const Arguments& arguments);
int run_rerun(const Arguments& arguments);
int run_launch(const Arguments& arguments);
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
int run_types(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_convert(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_sweep(const Arguments& arguments);
int run_ckpt(const Arguments& arguments);
int run_version(const Arguments& arguments);
extern const VerbSpec kAttachSpec, kBenchSpec, kCtlSpec, kRunSpec, kRerunSpec, kDiffSpec, kInitSpec,
    kImportSpec, kCheckSpec, kCompletionSpec, kTypesSpec, kConfigSpec, kPlanSpec, kReplSpec, kReportSpec,
    kSweepSpec, kTestSpec, kDataSpec, kTokenizerSpec, kLaunchSpec, kEvalSpec, kGenerateSpec, kConvertSpec,
    kCkptSpec, kDoctorSpec, kVersionSpec;

}  // namespace tycho
