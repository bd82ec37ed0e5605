// Tables of words from other programs, and what to type here.
#include "host/other_words.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string_view>

#include "bindings/define/recipe.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

struct OtherWords {
  const char* words;   // separated by blanks
  const char* answer;  // a verb, or the text to type; {} in an option's answer stands for its value
};

constexpr OtherWords kVerbs[] = {
    {"train fit pretrain finetune start", "run"},
    {"evaluate validate score", "eval"},
    {"infer inference predict complete", "generate"},
    {"talk converse", "chat"},
    {"export convert-hf", "convert"},
    {"tokenize preprocess prepare dataset", "data"},
    {"show print cfg keys", "config"},
    {"estimate memory", "plan"},
    {"shell console python prompt", "repl"},
    {"new create", "init"},
    {"lint validate-config", "check"},
    {"control", "ctl"},
    {"tensorboard wandb mlflow compare", "report"},
    {"torchrun mpirun srun distributed accelerate", "launch"},
    {"multirun tune search optuna", "sweep"},
    {"checkpoint checkpoints", "ckpt"},
    {"info env", "doctor"},
};

/// First words that users of other programs type, and the command that does the same; {} stands for the next
/// word.
constexpr OtherWords kCommands[] = {
    {"stop kill cancel", "ctl {} stop"},
    {"save", "ctl {} save"},
    {"pause", "ctl {} pause"},
    {"tail logs log", "ctl {} tail"},
    {"plot curve curves", "ctl {} plot loss"},
    {"profile trace", "ctl {} profile 3ba"},
    {"status ps list runs top", "ls"},
    {"resume continue restart", "run {}/recipe.lua"},
    {"verify", "ckpt verify {}"},
    {"watch", "attach {}"},
    {"set", "ctl {} set lr=2e-4"},
};

constexpr OtherWords kOptions[] = {
    {"m multirun", "several values need a sweep: tycho sweep RECIPE optimizer.lr=1e-3,1e-4"},
    {"config config_file config_path config_name job.config_file cn cp c f file recipe yaml",
     "a recipe is given without an option: tycho {verb} {value}"},
    {"nproc_per_node nproc nnodes num_processes num_gpus gpus n_gpus num_machines standalone np world_size n",
     "ranks are started by  tycho launch -n {count} run RECIPE  or by srun"},
    {"dry_run dry",
     "`tycho check RECIPE` only checks, and `tycho run RECIPE --print-only` prints the resolved recipe"},
    {"cfg print_config info print",
     "`tycho config RECIPE` shows every key, and `tycho run RECIPE --print-only` the resolved recipe"},
    {"resume continue autoresume resume_from_checkpoint restart",
     "leave it out: a run resumes from its newest checkpoint automatically; resume=PATH chooses another one"},
    {"verbose v quiet q debug d log_level loglevel",
     "there are no verbosity levels; --trace shows where in Lua an error was raised"},
    {"overwrite force", "a run resumes where it stopped; to start over:  resume=none"},
    {"wandb report_to tensorboard logger",
     "every run writes metrics.jsonl; log.sinks in the recipe adds loggers such as t.log.tensorboard {}"},
    {"compile torch_compile", "leave it out: Tycho's kernels are already compiled"},
    {"bf16 fp16 amp mixed_precision", "write  precision=bf16"},
    {"version V", "write  tycho version"},
};

/// Options for verbs that take no recipe and start no run.
constexpr OtherWords kOptionsWithoutRecipe[] = {
    {"overwrite force f y yes", "nothing that exists is overwritten: remove it first, or name another place"},
    {"verbose v quiet q debug d log_level loglevel", "there are no verbosity levels"},
    {"version V", "write  tycho version"},
};

constexpr const char* kEndings[] = {".lua", ".yaml", ".yml", ".toml", ".json"};

/// Returns the entry that has this word, or nullptr.
template <class Table>
const OtherWords* find_word(const Table& table, const std::string& word) {
  for (const OtherWords& one : table) {
    std::istringstream words(one.words);
    for (std::string known; words >> known;)
      if (known == word) return &one;
  }
  return nullptr;
}

bool is_file(const std::string& word) {
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* end) { return word.ends_with(end); });
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

/// An option as typed: "--optimizer.lr=3e-4" is {"optimizer.lr", "3e-4"}. The value may be the next word.
struct GivenOption {
  std::string name, value;
};

GivenOption read_option(const std::string& given, const std::string& next) {
  const std::string bare = given.substr(std::min(given.size(), given.find_first_not_of('-')));
  const size_t sign = bare.find('=');
  if (sign != std::string::npos) return {bare.substr(0, sign), bare.substr(sign + 1)};
  const bool has_value = !next.empty() && !next.starts_with("--") && !is_override(next) && !is_file(next);
  return {bare, has_value ? next : ""};
}

/// Returns the key that an option was meant for: the name itself, or the only key whose last part it is; ""
/// for none.
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::set<std::string> found;
  const Json shown = show_config({});
  for (const Json& row : shown.at("rows")) {
    const std::string path = row.at("path").get<std::string>();
    if (path == name) return path;
    if (path.ends_with("." + name)) found.insert(path);
  }
  return found.size() == 1 ? *found.begin() : "";
}

/// Returns true for verbs that start a run or look at a recipe. An import has keys, and writes a recipe.
bool takes_recipe(const Verb& verb) {
  const std::string_view usage = verb.spec.usage;
  return usage.find("run RECIPE") != usage.npos || (takes_overrides(verb) && !usage.starts_with("import "));
}

}  // namespace

void refuse_verb(const std::string& given, const std::string& next) {
  if (is_file(given))
    fail(ExitCode::kUsage, "[tycho] expected a verb first, got the file {}; write  tycho run {}", given,
         given);
  if (given == "-v" || given == "-V")
    fail(ExitCode::kUsage, "[tycho] expected a verb first, got the option {}; write  tycho version", given);
  if (given.starts_with("-"))
    fail(ExitCode::kUsage, "[tycho] expected a verb first, got the option {}; `tycho --help` lists the verbs",
         given);
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
  if (const OtherWords* command = find_word(kCommands, given)) {
    const std::string run = next.empty() || next.starts_with("-") ? "runs/NAME" : next;
    fail(ExitCode::kUsage, "[tycho] no verb \"{}\"; write  tycho {}", given,
         replaced(command->answer, "{}", run));
  }
  const OtherWords* other = find_word(kVerbs, given);
  if (other == nullptr && nearest(given, names).empty()) {
    std::vector<std::string> others;
    for (const OtherWords& one : kVerbs) {
      std::istringstream words(one.words);
      for (std::string word; words >> word;) others.push_back(word);
    }
    const std::vector<std::string> close = nearest(given, others);
    if (!close.empty()) other = find_word(kVerbs, close.front());
  }
  if (other != nullptr)
    fail(ExitCode::kUsage,
         "[tycho] no verb \"{}\"; `tycho help {}` explains the verb for it; did you mean \"{}\"?", given,
         other->answer, other->answer);
  fail(ExitCode::kUsage, "[tycho] no verb \"{}\"; `tycho --help` lists them{}", given,
       did_you_mean(given, names));
}

void refuse_option(const Verb& verb, const std::string& given, const std::string& next) {
  const auto [name, value] = read_option(given, next);
  std::vector<std::string> options;
  for (const OptionSpec& option : verb.spec.options) {
    const std::string text = option.name;
    options.push_back("--" + text.substr(text.find(',') == std::string::npos ? 0 : text.find(',') + 1));
  }
  std::string plain = name;
  std::replace(plain.begin(), plain.end(), '-', '_');
  const OtherWords* other =
      takes_recipe(verb) ? find_word(kOptions, plain) : find_word(kOptionsWithoutRecipe, plain);
  if (other != nullptr) {
    const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    std::string answer = replaced(other->answer, "{verb}", verb.name);
    answer = replaced(answer, "{count}", number ? value : "8");
    fail(ExitCode::kUsage, "[tycho {}] no option {}; {}", verb.name, given,
         replaced(answer, "{value}",
                  !value.empty()  ? value
                  : is_file(next) ? next
                                  : "RECIPE"));
  }
  const std::string near = did_you_mean(given.substr(0, given.find('=')), options);
  if (takes_overrides(verb) && near.empty()) {
    const std::string key = key_of(name);
    if (!key.empty())
      fail(ExitCode::kUsage, "[tycho {}] no option {}; write keys without dashes and with =: {}={}",
           verb.name, given, key, value.empty() ? "VALUE" : value);
    fail(ExitCode::kUsage,
         "[tycho {}] no option {}; write keys of the recipe as  key=value: `tycho config` lists them",
         verb.name, given);
  }
  fail(ExitCode::kUsage, "[tycho {}] no option {}; `tycho {} --help` lists them{}", verb.name, given,
       verb.name, near);
}

}  // namespace tycho
