// The arguments of a verb on the command line, and their parser.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tycho {

struct Verb;

/// The options of a command, and its other words in order.
struct Arguments {
  std::string verb;
  std::map<std::string, std::string> options;             // by long name; "true" for a switch that was given
  std::map<std::string, std::vector<std::string>> given;  // all values of each option, in the order given
  std::vector<std::string> words;
  std::vector<int> numbers;       // position of each word after the verb, from 1
  std::vector<std::string> argv;  // all arguments as given

  bool has(const std::string& option) const { return options.contains(option); }
  /// Returns the value of an option that was given or has a default. Throws Error (kUsage) that asks for it
  /// otherwise.
  const std::string& text(const std::string& option) const;
  /// Returns every value given, in order; empty when the option was not given.
  std::vector<std::string> all(const std::string& option) const;
  /// Returns the value as a number from `low` to `high`. Throws Error (kUsage) on anything else.
  int64_t integer(const std::string& option, int64_t low, int64_t high = INT64_MAX) const;
  double number(const std::string& option, double low, double high) const;
  /// Returns the value, split at commas.
  std::vector<std::string> list(const std::string& option) const;
};

/// Reads the arguments after the verb. Throws Error (kUsage). Sets `help` when the user asked for help and it
/// was printed.
Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& argv, bool& help);

/// Returns the index of the first argument that is neither an option nor an option's value; argv.size() when
/// there is none.
size_t first_word(const Verb& verb, const std::vector<std::string>& argv);

/// Returns the word at an index. Throws Error (kUsage) that names what is missing.
const std::string& word(const Arguments& arguments, size_t index, const char* what);
/// Throws Error (kUsage) when there are more words than the verb takes.
void no_more_words(const Arguments& arguments, size_t count);

/// Returns true for an override: key=value, key*=value and the like, +key=value, ~key or @file.
bool is_override(const std::string& word);

}  // namespace tycho
