// The table of verbs.
#include "host/verb.h"

#include <string>

#include "host/verb_help.h"
#include "trainer/base/error.h"
#include "trainer/base/nearest.h"

namespace tycho {

const std::vector<Verb>& all_verbs() {
  static const std::vector<Verb> verbs = {
      {"run", kRunSpec, run_run},
      {"rerun", kRerunSpec, run_rerun},
      {"launch", kLaunchSpec, run_launch},
      {"repl", kReplSpec, run_repl},
      {"attach", kAttachSpec, run_attach},
      {"ctl", kCtlSpec, run_ctl},
      {"sweep", kSweepSpec, run_sweep},
      {"init", kInitSpec, run_init},
      {"import", kImportSpec, run_import},
      {"check", kCheckSpec, run_check},
      {"config", kConfigSpec, run_config},
      {"schema", kSchemaSpec, run_schema},
      {"plan", kPlanSpec, run_plan},
      {"diff", kDiffSpec, run_diff},
      {"ls", kLsSpec, run_ls},
      {"report", kReportSpec, run_report},
      {"log", kLogSpec, run_log},
      {"types", kTypesSpec, run_types},
      {"fetch", kFetchSpec, run_fetch},
      {"test", kTestSpec, run_test},
      {"data", kDataSpec, run_data},
      {"tokenizer", kTokenizerSpec, run_tokenizer},
      {"eval", kEvalSpec, run_eval},
      {"generate", kGenerateSpec, run_generate},
      {"chat", kChatSpec, run_chat},
      {"convert", kConvertSpec, run_convert},
      {"ckpt", kCkptSpec, run_ckpt},
      {"doctor", kDoctorSpec, run_doctor},
      {"bench", kBenchSpec, run_bench},
      {"completion", kCompletionSpec, run_completion},
      {"version", kVersionSpec, run_version},
  };
  return verbs;
}

int pick_subverb(const Arguments& arguments, const char* verb, const std::vector<Subverb>& subverbs) {
  std::vector<std::string> names;
  for (const Subverb& one : subverbs) {
    if (!arguments.words.empty() && arguments.words[0] == one.first) return one.second(arguments);
    names.emplace_back(one.first);
  }
  if (arguments.words.empty())
    fail(ExitCode::kUsage, "[tycho {}] expected one of {}; {}", verb, fmt::join(names, ", "),
         example_of_verb(verb, {}));
  fail(ExitCode::kUsage, "[tycho {}] expected one of {}, got \"{}\"{}", verb, fmt::join(names, ", "),
       arguments.words[0], did_you_mean(arguments.words[0], names));
}

}  // namespace tycho
