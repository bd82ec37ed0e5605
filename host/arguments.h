// What follows a verb on the command line, and how it is read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"

namespace tycho {

struct Verb;

/// Options, and the words that are not options, in order.
struct Arguments {
  std::string verb;
  std::map<std::string, std::string> options;             // by long name; a switch that was given is "true"
  std::map<std::string, std::vector<std::string>> given;  // the values of each, as often as it was given
  std::vector<std::string> words;
  std::vector<int> numbers;       // position of each word after the verb, from 1
  std::vector<std::string> argv;  // all of it, as given

  bool has(const std::string& option) const { return options.contains(option); }
  /// The value of an option that has a default or was given; otherwise throws Error (kUsage) that asks for
  /// it.
  const std::string& text(const std::string& option) const;
  /// Every value that was given, in order; empty when the option was not given.
  std::vector<std::string> all(const std::string& option) const;
  /// The value as a number from `low` to `high`; throws Error (kUsage) on anything else.
  int64_t integer(const std::string& option, int64_t low, int64_t high = INT64_MAX) const;
  double number(const std::string& option, double low, double high) const;
  /// The value, split at commas.
  std::vector<std::string> list(const std::string& option) const;
};

/// Reads what follows the verb. Throws Error (kUsage). Sets `help` when the user asked for help and it was
/// printed.
Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& argv, bool& help);

/// The index of the first argument that is neither an option nor an option's value; argv.size() when there is
/// no such argument.
size_t first_word(const Verb& verb, const std::vector<std::string>& argv);

/// The word at an index; throws Error (kUsage) that names what is missing.
const std::string& word(const Arguments& arguments, size_t index, const char* what);
/// Throws Error (kUsage) when there are more words than the verb takes.
void no_more_words(const Arguments& arguments, size_t count);

/// Whether the word is an override: key=value, key*=value and the like, +key=value, ~key or @file.
bool is_override(const std::string& word);
/// The recipe and its pins from the words: the first word that is not an override is the file, all others are
/// overrides.
RecipeRequest recipe_words(const Arguments& arguments);
/// The same; a file of another system is made into a recipe.
RecipeRequest recipe_request(const Arguments& arguments);

}  // namespace tycho
