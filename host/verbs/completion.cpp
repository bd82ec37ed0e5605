// tycho completion: what the shell's tab key offers.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "bindings/define/recipe.h"
#include "host/help/doc_pages.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kCompletionSpec = {
    "completion bash|zsh|fish",
    "Prints a completion script for a shell: verbs, options, keys, values and files.",
    "  tycho completion bash > ~/.local/share/bash-completion/completions/tycho\n"
    "  tycho completion zsh > ~/.zfunc/_tycho            # a folder in fpath, before compinit\n"
    "  tycho completion fish > ~/.config/fish/completions/tycho.fish\n"
    "  tycho completion candidates run recipes/demo.lua optimizer.l     # what the scripts ask"};

namespace {

// Bash splits words at = and :, so the words are taken from the line itself, and what comes before the last
// such character is taken off the candidates.
constexpr const char* kBash = R"(# bash completion for tycho, written by `tycho completion bash`
_tycho() {
  local line=${COMP_LINE:0:COMP_POINT} candidate head
  local -a words
  read -ra words <<< "$line"
  [[ $line == *' ' ]] && words+=("")
  local current=${words[${#words[@]}-1]}
  current=${current#[\'\"]}
  words[${#words[@]}-1]=$current
  head=${current%"${current##*[=:@]}"}
  COMPREPLY=()
  while IFS= read -r candidate; do
    [[ $candidate == *[=./] ]] && compopt -o nospace 2>/dev/null
    COMPREPLY+=("${candidate#"$head"}")
  done < <("${words[0]}" completion candidates -- "${words[@]:1}" 2>/dev/null)
}
complete -F _tycho tycho
)";

constexpr const char* kZsh = R"(#compdef tycho
# zsh completion for tycho, written by `tycho completion zsh`
_tycho() {
  local -a candidates open closed
  candidates=("${(@f)$(${words[1]} completion candidates -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  open=(${(M)candidates:#*[=./]})
  closed=(${candidates:#*[=./]})
  (( $#open )) && compadd -S '' -- "${open[@]}"
  (( $#closed )) && compadd -- "${closed[@]}"
}
if [[ $funcstack[1] == _tycho ]]; then _tycho "$@"; else compdef _tycho tycho; fi
)";

constexpr const char* kFish = R"(# fish completion for tycho, written by `tycho completion fish`
function __tycho_candidates
    set -l before (commandline -opc)
    tycho completion candidates -- $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c tycho -f -a '(__tycho_candidates)'
)";

using Words = std::vector<std::string>;

Words with_prefix(const Words& all, const std::string& prefix) {
  Words out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const std::string& one) { return one.starts_with(prefix); });
  return out;
}

/// Returns folders, and files whose name ends in one of these ("" for all), that complete a half-written
/// path.
Words files_from(const std::string& typed, const Words& endings) {
  const size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  const std::string stem = typed.substr(folder.size());
  Words out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool hidden = name[0] == '.' && !stem.starts_with('.');
    if (hidden || !name.starts_with(stem)) continue;
    if (entry.is_directory(ignored)) {
      out.push_back(folder + name + "/");
    } else if (std::any_of(endings.begin(), endings.end(),
                           [&](const std::string& ending) { return name.ends_with(ending); })) {
      out.push_back(folder + name);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Returns the subverbs of a verb: "convert" and "inspect" for usage lines "data convert" and "tycho data
/// inspect".
Words subverbs(const Verb& verb) {
  Words out;
  std::istringstream lines(verb.spec.usage);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream line_words(line);
    std::string one;
    line_words >> one;
    if (one == "tycho") line_words >> one;
    line_words >> one;
    std::istringstream choices(one);
    while (std::getline(choices, one, '|')) {
      const bool plain =
          std::all_of(one.begin(), one.end(), [](char c) { return c == '-' || (c >= 'a' && c <= 'z'); });
      if (plain && !one.empty() && std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
    }
  }
  return out;
}

Words options_of(const Verb& verb) {
  Words out = {"--help"};
  for (const OptionSpec& option : verb.spec.options) {
    const std::string name = option.name;
    out.push_back("--" + name.substr(name.find(',') + 1));
  }
  if (takes_overrides(verb)) out.insert(out.end(), {"--set", "--unset"});
  return out;
}

/// Returns keys without values, for options that take a key.
Words keys_from(Words words, const char* prefix) {
  words.back().insert(0, prefix);
  Words out = complete_override(words);
  for (std::string& one : out) one.erase(0, std::string_view(prefix).size());
  return out;
}

Words override_or_file(const Words& words) {
  const std::string& typed = words.back();
  const bool has_recipe = std::any_of(words.begin() + 1, words.end() - 1,
                                      [](const std::string& one) { return !is_override(one); });
  if (typed.starts_with('@')) {
    Words out = files_from(typed.substr(1), {""});
    for (std::string& one : out) one.insert(0, "@");
    return out;
  }
  if (!has_recipe && !is_override(typed)) {
    Words out = files_from(typed, {".lua", ".yaml", ".yml", ".toml"});
    if (words[0] != "config") return out;
    const Words keys = complete_override({typed});
    out.insert(out.end(), keys.begin(), keys.end());
    return out;
  }
  return complete_override(words);
}

Words candidates(const Words& words);

/// Completes a verb that begins another's command: its options and their values, the other verb, then that
/// verb's own completions.
Words passed_on(const Verb& verb, const Words& words) {
  const size_t first = 1 + first_word(verb, {words.begin() + 1, words.end()});
  if (first + 1 < words.size())
    return candidates({words.begin() + static_cast<std::ptrdiff_t>(first), words.end()});
  const std::string& typed = words.back();
  if (first < words.size()) return with_prefix({"run", "rerun"}, typed);
  return typed.starts_with('-') ? with_prefix(options_of(verb), typed) : Words{};
}

/// Returns the completions of the last of the words after `tycho`.
Words candidates(const Words& words) {
  const std::string& typed = words.back();
  if (words.size() == 1) {
    Words names = {"--help", "--version", "help"};
    for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
    return with_prefix(names, typed);
  }
  if (words[0] == "help" && words.size() == 2) {
    Words names = all_topics();
    for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return with_prefix(names, typed);
  }
  const auto verb = std::find_if(all_verbs().begin(), all_verbs().end(),
                                 [&](const Verb& one) { return words[0] == one.name; });
  if (verb == all_verbs().end()) return {};
  if (verb->spec.passes_on) return passed_on(*verb, words);
  const std::string& before = words[words.size() - 2];
  if (before == "--unset" || before == "--why") return keys_from(words, "~");
  if (before == "--set") return complete_override(words);
  if (typed.starts_with('-')) return with_prefix(options_of(*verb), typed);
  if (takes_overrides(*verb)) return override_or_file(words);
  const Words choices = subverbs(*verb);
  if (words.size() == 2 && !choices.empty()) return with_prefix(choices, typed);
  return files_from(typed, {""});
}

int print_candidates(const Arguments& arguments) {
  const Words words(arguments.words.begin() + 1, arguments.words.end());
  if (words.empty()) return 0;
  for (const std::string& one : candidates(words)) fmt::print("{}\n", one);
  return 0;
}

int print_script(const Arguments& arguments) {
  no_more_words(arguments, 1);
  const std::string& shell = arguments.words[0];
  fmt::print("{}", shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  return 0;
}

}  // namespace

int run_completion(const Arguments& arguments) {
  return pick_subverb(arguments, "completion",
                      {{"bash", print_script},
                       {"zsh", print_script},
                       {"fish", print_script},
                       {"candidates", print_candidates}});
}

}  // namespace tycho
