// cxxopts finds the options; this file spells out overrides and remembers where each word stood.
#include "host/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#define CXXOPTS_NO_REGEX  // its own parser instead: <regex> takes seconds to compile
#include <cxxopts.hpp>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "host/other_words.h"
#include "host/verb.h"
#include "host/verb_help.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr OptionSpec kSetOption = {"set", "Same as key=value.", "KEY=VALUE"};
constexpr OptionSpec kUnsetOption = {"unset", "Same as ~key, for shells that expand ~.", "KEY"};

/// Arguments with --set and --unset replaced by the overrides that they stand for, and the position of each,
/// from 1.
struct NumberedWords {
  std::vector<std::string> words;
  std::vector<int> numbers;
};

/// Returns the argument at `i`, or the override that it begins. Moves `i` to the last argument that belongs
/// to it.
std::string spelled_override(const Verb& verb, const std::vector<std::string>& argv, size_t& i) {
  for (const auto& [option, mark] : {std::pair<std::string, std::string>{"--set", ""}, {"--unset", "~"}}) {
    if (argv[i].starts_with(option + "=")) return mark + argv[i].substr(option.size() + 1);
    if (argv[i] != option) continue;
    if (i + 1 == argv.size()) fail(ExitCode::kUsage, "[tycho {}] {} needs a key after it", verb.name, option);
    return mark + argv[++i];
  }
  return argv[i];
}

std::string long_name(const OptionSpec& option) {
  const std::string name = option.name;
  const size_t comma = name.find(',');
  return comma == std::string::npos ? name : name.substr(comma + 1);
}

/// Returns an argument with - for each _ in the name of an option that the verb has so: --eos_text, as other
/// programs write it, is --eos-text.
std::string spelled_option(const Verb& verb, const std::string& argument) {
  const size_t end = std::min(argument.find('='), argument.size());
  if (!argument.starts_with("--") || argument.find('_') >= end) return argument;
  std::string name = argument.substr(0, end);
  std::replace(name.begin(), name.end(), '_', '-');
  const bool is_known = std::any_of(verb.spec.options.begin(), verb.spec.options.end(),
                                    [&](const OptionSpec& one) { return "--" + long_name(one) == name; });
  return is_known ? name + argument.substr(end) : argument;
}

NumberedWords spell_overrides(const Verb& verb, const std::vector<std::string>& argv) {
  NumberedWords out;
  const auto end = takes_overrides(verb) ? std::find(argv.begin(), argv.end(), "--") : argv.begin();
  const auto num_spelled = static_cast<size_t>(end - argv.begin());
  for (size_t i = 0; i < argv.size(); ++i) {
    out.words.push_back(i < num_spelled ? spelled_override(verb, argv, i) : spelled_option(verb, argv[i]));
    out.numbers.push_back(static_cast<int>(i) + 1);
  }
  return out;
}

/// Returns true when the next argument is the value of this one: for "--grace" and "-n", not for "--grace=5"
/// or "-n2".
bool takes_next(const OptionSpec& option, const std::string& argument) {
  const std::string name = option.name;
  const bool has_short = name.find(',') == 1;
  return option.placeholder != nullptr && option.bare_text == nullptr &&
         (argument == "--" + long_name(option) || (has_short && argument == "-" + name.substr(0, 1)));
}

/// Describes the options to cxxopts. All are read as text; each verb checks its own values.
cxxopts::Options describe(const Verb& verb) {
  cxxopts::Options options(std::string("tycho ") + verb.name, "");
  cxxopts::OptionAdder add = options.add_options();
  for (const OptionSpec& option : verb.spec.options) {
    auto value = option.placeholder != nullptr ? cxxopts::value<std::string>() : nullptr;
    if (value == nullptr) {
      add(option.name, option.help);
      continue;
    }
    if (option.default_text != nullptr) value->default_value(option.default_text);
    if (option.bare_text != nullptr) value->implicit_value(option.bare_text);
    add(option.name, option.help, value, option.placeholder);
  }
  add("h,help", "Show this help.");
  options.allow_unrecognised_options();
  return options;
}

/// Reads the options that were given or have a default.
void read_options(const Verb& verb, const cxxopts::ParseResult& parsed, Arguments& arguments) {
  for (const OptionSpec& option : verb.spec.options) {
    const std::string name = long_name(option);
    const bool is_given = parsed.count(name) > 0;
    if (option.placeholder == nullptr) {
      if (is_given) arguments.options[name] = "true";
    } else if (is_given || option.default_text != nullptr) {
      arguments.options[name] = parsed[name].as<std::string>();
    }
  }
  for (const auto& one : parsed.arguments()) arguments.given[one.key()].push_back(one.value());
}

/// Sets the position of each word: cxxopts returns the words that it does not know, in order. Throws Error
/// for a word that looks like an option, unless it follows "--".
void number_words(const Verb& verb, const NumberedWords& given, Arguments& arguments) {
  size_t position = 0;
  bool only_words = false;  // after "--"
  for (const std::string& word : arguments.words) {
    for (; position < given.words.size() && given.words[position] != word; ++position)
      only_words |= given.words[position] == "--";
    if (!only_words && word.size() > 1 && word[0] == '-')
      refuse_option(verb, word, position + 1 < given.words.size() ? given.words[position + 1] : "");
    arguments.numbers.push_back(position < given.numbers.size() ? given.numbers[position] : 0);
    ++position;
  }
}

}  // namespace

bool takes_overrides(const Verb& verb) {
  return std::string_view(verb.spec.usage).find("key=value") != std::string_view::npos;
}

std::vector<OptionSpec> shown_options(const Verb& verb) {
  std::vector<OptionSpec> shown = verb.spec.options;
  if (takes_overrides(verb)) shown.insert(shown.end(), {kSetOption, kUnsetOption});
  shown.push_back({"h,help", "Show this help."});
  return shown;
}

size_t first_word(const Verb& verb, const std::vector<std::string>& argv) {
  const std::vector<OptionSpec>& options = verb.spec.options;
  for (size_t i = 0; i < argv.size(); ++i) {
    if (argv[i].empty() || argv[i][0] != '-') return i;
    if (std::any_of(options.begin(), options.end(),
                    [&](const OptionSpec& option) { return takes_next(option, argv[i]); }))
      ++i;
  }
  return argv.size();
}

Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& argv, bool& help) {
  const size_t num_own = verb.spec.passes_on ? first_word(verb, argv) : argv.size();
  const auto own_end = argv.begin() + static_cast<std::ptrdiff_t>(num_own);
  const NumberedWords given = spell_overrides(verb, {argv.begin(), own_end});
  std::vector<const char*> pointers = {verb.name};
  for (const std::string& argument : given.words) pointers.push_back(argument.c_str());
  Arguments arguments = {.verb = verb.name, .argv = argv};
  cxxopts::Options options = describe(verb);
  try {
    const cxxopts::ParseResult parsed = options.parse(static_cast<int>(pointers.size()), pointers.data());
    help = parsed.count("help") > 0;
    if (help) fmt::print("{}", help_of_verb(verb, shown_options(verb), parsed.unmatched()));
    read_options(verb, parsed, arguments);
    arguments.words = parsed.unmatched();
  } catch (const cxxopts::exceptions::exception& error) {
    fail(ExitCode::kUsage, "[tycho {}] {}; `tycho {} --help` lists the options", verb.name, error.what(),
         verb.name);
  }
  number_words(verb, given, arguments);
  for (size_t i = num_own; i < argv.size(); ++i) {
    arguments.words.push_back(argv[i]);
    arguments.numbers.push_back(static_cast<int>(i) + 1);
  }
  return arguments;
}

const std::string& Arguments::text(const std::string& option) const {
  const auto found = options.find(option);
  if (found == options.end())
    fail(ExitCode::kUsage, "[tycho {}] expected --{}, {}", verb, option, example_of_verb(verb, words));
  return found->second;
}

std::vector<std::string> Arguments::all(const std::string& option) const {
  const auto found = given.find(option);
  return found == given.end() ? std::vector<std::string>() : found->second;
}

int64_t Arguments::integer(const std::string& option, int64_t low, int64_t high) const {
  const std::string& value_text = text(option);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(value_text.data(), value_text.data() + value_text.size(), value);
  if (error == std::errc() && end == value_text.data() + value_text.size() && value >= low && value <= high)
    return value;
  const std::string range =
      high == INT64_MAX ? fmt::format("of at least {}", low) : fmt::format("from {} to {}", low, high);
  fail(ExitCode::kUsage, "[tycho {}] --{} expected a whole number {}, got \"{}\"", verb, option, range,
       value_text);
}

double Arguments::number(const std::string& option, double low, double high) const {
  const std::string& value_text = text(option);
  double value = 0;
  const auto [end, error] = std::from_chars(value_text.data(), value_text.data() + value_text.size(), value);
  if (error == std::errc() && end == value_text.data() + value_text.size() && value >= low && value <= high)
    return value;
  fail(ExitCode::kUsage, "[tycho {}] --{} expected a number from {} to {}, got \"{}\"", verb, option, low,
       high, value_text);
}

std::vector<std::string> Arguments::list(const std::string& option) const {
  std::vector<std::string> items;
  std::istringstream text_stream(text(option));
  for (std::string item; std::getline(text_stream, item, ',');) items.push_back(item);
  return items;
}

bool is_override(const std::string& word) {
  return word.find('=') != std::string::npos || word.find_first_of("~+@") == 0;
}

const std::string& word(const Arguments& arguments, size_t index, const char* what) {
  if (index < arguments.words.size()) return arguments.words[index];
  fail(ExitCode::kUsage, "[tycho {}] expected {}, {}", arguments.verb, what,
       example_of_verb(arguments.verb, arguments.words));
}

void no_more_words(const Arguments& arguments, size_t count) {
  if (arguments.words.size() <= count) return;
  fail(ExitCode::kUsage, "[tycho {}] did not expect \"{}\"; `tycho {} --help` says what it takes",
       arguments.verb, arguments.words[count], arguments.verb);
}

}  // namespace tycho
