// Help is laid out here; the words are the verbs' own.
#include "host/verb_help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "host/help/doc_pages.h"

namespace tycho {
namespace {

/// A verb and its purpose in one line; a title begins a group.
struct HelpLine {
  const char* verb;
  const char* what;
};

constexpr HelpLine kHelpLines[] = {
    {"", "Write a run"},
    {"init", "a new project: a first recipe, editor settings, next steps"},
    {"import", "a recipe from a file of LLM Foundry, TorchTitan, Nanotron or Hugging Face"},
    {"check", "every mistake of a recipe at once; starts nothing"},
    {"config", "every key: its value, default and help, and who set it"},
    {"schema", "the JSON Schema of a resolved recipe, for editors and other tools"},
    {"plan", "what a run will take, and which mesh is fastest; starts nothing"},
    {"diff", "the keys that differ between recipes or runs"},
    {"test", "checks all recipes of a folder, and runs Lua specs"},
    {"types", "stubs with which an editor completes and checks keys"},
    {"fetch", "files of the Hugging Face hub, and remote data of a recipe, to this machine"},
    {"", "Data"},
    {"data", "text to shards; shows, counts, verifies, joins and copies data sets"},
    {"tokenizer", "trains, inspects and compares tokenizers; encodes and decodes"},
    {"", "Train"},
    {"run", "trains a recipe; the same command resumes it"},
    {"rerun", "a new run from what a run folder holds"},
    {"launch", "several ranks of a run on this machine"},
    {"sweep", "runs a recipe with many settings and compares them"},
    {"repl", "a prompt: inspect a recipe, train it step by step, look at tensors"},
    {"", "Watch and steer a run"},
    {"ctl", "stop, save, evaluate, profile, pause; change settings; tail and plot"},
    {"attach", "a prompt in a live run"},
    {"ls", "the runs of a folder: state, step and loss"},
    {"report", "runs side by side, as a table and as a page with plots"},
    {"ckpt", "lists, verifies, compares and splits checkpoints"},
    {"", "Use a model"},
    {"eval", "its loss on held-out data, or its scores on tasks"},
    {"generate", "text from it"},
    {"chat", "a conversation with it"},
    {"convert", "to and from Hugging Face folders"},
    {"", "This machine"},
    {"doctor", "is it ready, and what to do about problems"},
    {"bench", "measures connections, storage, data and steps"},
    {"completion", "a script that completes verbs, keys and files in your shell"},
    {"version", "versions, and which kernels compute"},
};

/// Appends words to `text`, whose last line has `column` columns, and continues on the next line at column
/// `indent`.
void wrap(std::string& text, const std::string& words, size_t column, size_t indent, size_t columns) {
  std::istringstream stream(words);
  bool is_first = true;
  for (std::string word; stream >> word; is_first = false) {
    if (!is_first && column + 1 + word.size() > columns) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      text += " ";
      ++column;
    }
    text += word;
    column += word.size();
  }
  text += "\n";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const size_t begin = line.find_first_not_of(' ');
    lines.push_back(begin == std::string::npos ? "" : line.substr(begin));
  }
  return lines;
}

/// Returns true when a command begins with these words: "ckpt ls RUN" begins with {"ckpt", "ls"}.
bool begins_with(const std::string& command, const std::vector<std::string>& words) {
  std::istringstream stream(command);
  for (const std::string& word : words) {
    std::string given;
    if (!(stream >> given) || given != word) return false;
  }
  return true;
}

/// Returns the usage lines of a verb, each without "tycho".
std::vector<std::string> uses_of(const Verb& verb) {
  std::vector<std::string> uses = lines_of(verb.spec.usage);
  for (std::string& use : uses)
    if (use.starts_with("tycho ")) use.erase(0, 6);
  return uses;
}

/// Returns the lines of examples. The comment of a line that is too long is printed above it.
std::string example_lines(const std::vector<std::string>& examples) {
  std::string text;
  for (const std::string& line : examples) {
    const size_t comment = line.find("  #");
    if (comment == std::string::npos || line.size() + 2 <= columns_of_terminal()) {
      text += "  " + line + "\n";
      continue;
    }
    text += fmt::format("  {}\n  {}\n", line.substr(line.find('#', comment)),
                        line.substr(0, line.find_last_not_of(' ', comment) + 1));
  }
  return text;
}

bool is_subverb_name(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

/// Returns the second word of every usage line, such as "convert" in "data convert INPUT"; empty when a line
/// has no subverb.
std::set<std::string> subverbs_of(const Verb& verb) {
  std::set<std::string> names;
  for (const std::string& use : uses_of(verb)) {
    std::istringstream stream(use);
    std::string name, second;
    stream >> name >> second;
    if (!is_subverb_name(second)) return {};
    names.insert(second);
  }
  return names;
}

/// A sentence of an option's help and the subverbs that it applies to: "stats, sample: instead of the data
/// set's own."
struct Clause {
  std::set<std::string> subverbs;  // empty: all
  std::string text;
};

/// Returns the names before the colon at the beginning of a sentence; empty when there are none.
std::set<std::string> names_before_colon(const std::string& sentence, const std::set<std::string>& subverbs) {
  const size_t colon = sentence.find(": ");
  if (colon == std::string::npos) return {};
  std::set<std::string> names;
  std::istringstream stream(sentence.substr(0, colon));
  for (std::string name; std::getline(stream, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    if (name.starts_with("For ")) name.erase(0, 4);
    name = name.substr(0, name.find(' '));  // "convert --chat"
    if (!subverbs.contains(name)) return {};
    names.insert(name);
  }
  return names;
}

std::vector<Clause> clauses_of(const std::string& help, const std::set<std::string>& subverbs) {
  std::vector<Clause> clauses;
  for (size_t begin = 0; begin < help.size();) {
    const size_t stop = help.find(". ", begin);
    const size_t end = stop == std::string::npos ? help.size() : stop + 1;
    const std::string sentence = help.substr(begin, end - begin);
    const std::set<std::string> names = names_before_colon(sentence, subverbs);
    if (!names.empty() || clauses.empty()) {
      clauses.push_back({names, sentence});
    } else {
      clauses.back().text += " " + sentence;
    }
    begin = stop == std::string::npos ? help.size() : stop + 2;
  }
  return clauses;
}

/// Returns the help of an option for a subverb, without the subverb's name; "" when the option does not apply
/// to it.
std::string help_for(const OptionSpec& option, const std::string& subverb,
                     const std::set<std::string>& subverbs) {
  std::string text;
  for (const Clause& clause : clauses_of(option.help, subverbs)) {
    if (!clause.subverbs.empty() && !clause.subverbs.contains(subverb)) continue;
    const std::string before = clause.text.substr(0, clause.text.find(": "));
    const bool is_bare = before.find(" --") == std::string::npos && !clause.subverbs.empty();
    std::string words = is_bare ? clause.text.substr(before.size() + 2) : clause.text;
    if (is_bare && !words.empty()) words[0] = static_cast<char>(std::toupper(words[0]));
    text += (text.empty() ? "" : " ") + words;
  }
  return text;
}

/// Returns "-n, --trials N", or "    --json".
std::string option_name(const OptionSpec& option) {
  const std::string name = option.name;
  const bool has_short = name.size() > 2 && name[1] == ',';
  std::string text =
      has_short ? fmt::format("-{}, --{}", name[0], name.substr(2)) : fmt::format("    --{}", name);
  if (option.placeholder == nullptr) return text;
  return text + (option.bare_text != nullptr ? fmt::format("[={}]", option.placeholder)
                                             : fmt::format(" {}", option.placeholder));
}

std::string option_lines(const std::vector<OptionSpec>& options, const std::string& subverb,
                         const std::set<std::string>& subverbs) {
  constexpr size_t kHelpColumn = 26;
  std::string text;
  for (const OptionSpec& option : options) {
    std::string help = subverb.empty() ? option.help : help_for(option, subverb, subverbs);
    if (help.empty()) continue;
    const std::string default_text = option.default_text == nullptr ? "" : option.default_text;
    if (!default_text.empty()) help += fmt::format(" (default: {})", default_text);
    std::string line = "  " + option_name(option);
    line += line.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                          : std::string(kHelpColumn - line.size(), ' ');
    text += line;
    wrap(text, help, kHelpColumn, kHelpColumn, columns_of_terminal());
  }
  return text;
}

std::vector<std::string> examples_of(const Verb& verb, const std::vector<std::string>& words) {
  std::vector<std::string> wanted = {"tycho", verb.name}, all, found;
  wanted.insert(wanted.end(), words.begin(), words.end());
  for (const std::string& line : lines_of(verb.spec.example)) {
    all.push_back(line);
    if (begins_with(line.substr(std::min(line.find("tycho"), line.size())), wanted)) found.push_back(line);
  }
  return found.empty() ? all : found;
}

}  // namespace

size_t columns_of_terminal() {
  size_t columns = 80;
  if (const char* given = std::getenv("COLUMNS"); given != nullptr && std::atoi(given) > 0)
    columns = static_cast<size_t>(std::atoi(given));
  for (const int file : {STDIN_FILENO, STDERR_FILENO, STDOUT_FILENO})
    if (winsize size{}; ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  return std::clamp<size_t>(columns, 40, 120);
}

std::string help_of_all_verbs() {
  std::string text =
      "tycho trains, finetunes and samples language models. A run is a recipe, a program\n"
      "in Lua.\n"
      "\n  tycho VERB [arguments]\n";
  for (const HelpLine& line : kHelpLines) {
    const bool is_title = *line.verb == '\0';
    text += is_title ? fmt::format("\n{}\n", line.what) : fmt::format("  {:<10}  ", line.verb);
    if (!is_title) wrap(text, line.what, 14, 14, columns_of_terminal());
  }
  text += "\nPages\n  ";
  wrap(text, fmt::format("{}", fmt::join(all_topics(), ", ")), 2, 2, columns_of_terminal());
  return text +
         "\n`tycho VERB --help` explains a verb, `tycho help PAGE` shows a page. Example:\n"
         "  tycho run recipes/demo.lua optimizer.lr=1e-3\n";
}

std::string help_of_verb(const Verb& verb, const std::vector<OptionSpec>& options,
                         const std::vector<std::string>& words) {
  const std::set<std::string> subverbs = subverbs_of(verb);
  const std::string subverb = !words.empty() && subverbs.contains(words[0]) ? words[0] : "";
  std::string text;
  for (const std::string& use : uses_of(verb)) {
    if (!subverb.empty() && !begins_with(use, {verb.name, subverb})) continue;
    text += text.empty() ? "tycho " : "       tycho ";
    wrap(text, use, text.size() - text.rfind('\n') - 1, 15, columns_of_terminal());
  }
  text += "\n";
  if (subverb.empty()) {
    wrap(text, verb.spec.summary, 0, 0, columns_of_terminal());
    text += "\n";
  }
  if (subverb.empty() && !subverbs.empty()) {
    text += fmt::format("`tycho {} {} --help` lists the options of {}, and so on for each.\n", verb.name,
                        *subverbs.begin(), *subverbs.begin());
  } else {
    text += option_lines(options, subverb, subverbs);
  }
  const std::vector<std::string> examples =
      subverb.empty() ? lines_of(verb.spec.example) : examples_of(verb, {subverb});
  return text + "\nExample:\n" + example_lines(examples);
}

std::string example_of_verb(const std::string& verb, const std::vector<std::string>& words) {
  for (const Verb& one : all_verbs()) {
    if (verb != one.name) continue;
    const std::set<std::string> subverbs = subverbs_of(one);
    const bool has_subverb = !words.empty() && subverbs.contains(words[0]);
    std::string example =
        examples_of(one, has_subverb ? std::vector{words[0]} : std::vector<std::string>()).front();
    example = example.substr(0, example.find("  #"));
    return fmt::format("such as  {}  (`tycho {}{} --help`)",
                       example.substr(0, example.find_last_not_of(' ') + 1), verb,
                       has_subverb ? " " + words[0] : "");
  }
  return "see `tycho --help`";
}

}  // namespace tycho
