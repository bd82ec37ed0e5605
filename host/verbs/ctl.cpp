// tycho ctl: one command to a live run, or a look at what it wrote.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "host/standard_streams.h"
#include "host/verb.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/nearest.h"
#include "trainer/callbacks/command.h"
#include "trainer/control/channel.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/recipe/ckpt.h"
#include "trainer/report/waiting_ranks.h"

namespace tycho {

const VerbSpec kCtlSpec = {
    "ctl RUN stop|save|eval|profile|set|pause|resume|tail|collectives [arguments]\n"
    "       tycho ctl RUN... plot [METRIC...]",
    "Sends a command to a live run, or shows what it wrote. Commands take effect at the next step boundary.",
    "  tycho ctl runs/demo save before-lunch\n"
    "  tycho ctl runs/demo set lr=2e-4            # lr= alone returns it to the schedule\n"
    "  tycho ctl runs/demo set clip=0.5 log_every=10ba\n"
    "  tycho ctl runs/demo set optimizer.eps=1e-6 # a number of the optimizer, also of one that the recipe "
    "defines\n"
    "  tycho ctl runs/demo profile 3ba            # a trace of the next three steps\n"
    "  tycho ctl runs/demo stop 'the loss is flat'\n"
    "  tycho ctl runs/demo plot loss eval.loss\n"
    "  tycho ctl runs/demo runs/fork plot loss    # a metric of several runs, on one scale\n"
    "  tycho ctl runs/demo collectives            # of a run that hangs: which rank the others wait for",
    {{"lines", "tail: number of lines.", "N", "10"}}};

namespace {

constexpr auto kWaitForRanks = std::chrono::seconds(10);  // for the next of them; file systems may be late

const std::string& run_dir(const Arguments& arguments) { return word(arguments, 0, "the folder of a run"); }

/// Returns the text as a Lua string.
std::string quoted(const std::string& text) { return Json(text).dump(); }

int send(const Arguments& arguments, const std::string& code) {
  const ControlAnswer answer = ControlClient(run_dir(arguments)).ask(code, /*may_command=*/true);
  if (!answer.ok) throw Error("[run] " + answer.text, ExitCode::kRecipe);
  fmt::print("{}\n", answer.text);
  return 0;
}

/// Sends a command whose spelling is one word, with the argument that may follow.
int send_command(const Arguments& arguments, const CommandSpec& spec) {
  no_more_words(arguments, spec.arguments.empty() ? 2 : 3);
  if (arguments.words.size() <= 2) return send(arguments, fmt::format("cmd.{}()", spec.name));
  const std::string& argument = arguments.words[2];
  if (spec.arguments[0].type == CommandArgument::Type::kTag && !is_tag(argument))
    fail(ExitCode::kUsage, "[tycho ctl] expected a name without \"/\", got {}", argument);
  return send(arguments, fmt::format("cmd.{}({})", spec.name, quoted(argument)));
}

/// Returns the key of `set KEY=VALUE` for a command that is spelled so, else "". One that ends with a dot is
/// followed by a name.
std::string key_to_set(const CommandSpec& spec) {
  const std::string spelling = spec.ctl;
  return spelling.starts_with("set ") ? spelling.substr(4) : "";
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  return !text.empty() && std::isfinite(std::strtod(text.c_str(), &end)) && *end == '\0';
}

/// Returns a value as Lua: a number, a list of numbers, true or false; other text in quotes.
std::string lua_value(const std::string& text) {
  if (is_number(text) || text == "true" || text == "false") return text;
  if (!text.starts_with('[') || !text.ends_with(']')) return quoted(text);
  std::string list;
  std::istringstream items(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(items, item, ',');) list += lua_value(item) + ", ";
  return "{" + list + "}";
}

std::string value_code(const CommandSpec& spec, const std::string& key, const std::string& value) {
  if (value.empty()) return "nil";
  if (spec.arguments[0].type == CommandArgument::Type::kDuration) return quoted(value);
  if (spec.arguments[0].type == CommandArgument::Type::kNumber && !is_number(value))
    fail(ExitCode::kUsage, "[tycho ctl] {}: expected a number, got {}", key, value);
  return lua_value(value);
}

[[noreturn]] void cannot_set(const std::string& key, const std::vector<std::string>& keys) {
  if (key.starts_with("loss."))
    fail(ExitCode::kUsage,
         "[tycho ctl] set {0}: numbers of a loss are part of its formulas, which a run keeps: stop the run, "
         "change {0} in the recipe or give {0}=VALUE to `tycho run`, and start it again, which resumes it",
         key);
  fail(ExitCode::kUsage, "[tycho ctl] set takes {}; got {}{}", fmt::join(keys, ", "), key,
       did_you_mean(key, keys));
}

std::string setting_code(const std::string& given) {
  const size_t equals = given.find('=');
  const std::string key = given.substr(0, equals);
  std::vector<std::string> keys;
  for (const CommandSpec& spec : all_commands()) {
    const std::string known = key_to_set(spec);
    if (known.empty()) continue;
    const bool takes_name = known.ends_with('.');
    keys.push_back(takes_name ? known + "NAME" : known);
    if (takes_name ? !key.starts_with(known) || key == known : key != known && key != spec.key) continue;
    if (equals == std::string::npos)
      fail(ExitCode::kUsage,
           "[tycho ctl] set {0} needs a value: set {0}=..., or {0}= to restore the recipe's", key);
    const std::string value = given.substr(equals + 1);
    if (takes_name && value.empty())
      return fmt::format("cmd.{}({}, nil)", spec.name, quoted(key.substr(known.size())));
    if (takes_name)
      return fmt::format("cmd.{}({}, {})", spec.name, quoted(key.substr(known.size())), lua_value(value));
    return fmt::format("cmd.{}({})", spec.name, value_code(spec, key, value));
  }
  cannot_set(key, keys);
}

int run_set(const Arguments& arguments) {
  word(arguments, 2, "KEY=VALUE");
  std::string code;
  for (size_t i = 2; i < arguments.words.size(); ++i) code += setting_code(arguments.words[i]) + " ";
  return send(arguments, code);
}

int run_tail(const Arguments& arguments) {
  no_more_words(arguments, 2);
  const auto count = static_cast<size_t>(arguments.integer("lines", 1, 1 << 20));
  const std::string path = run_dir(arguments) + "/log.txt";
  std::ifstream log(path);
  if (!log) fail(ExitCode::kUnusable, "[tycho ctl] cannot read {}", path);
  std::deque<std::string> last;
  for (std::string line; std::getline(log, line); last.push_back(line))
    if (last.size() == count) last.pop_front();
  for (const std::string& line : last) fmt::print("{}\n", line);
  return 0;
}

int run_plot(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  const auto what = std::find(words.begin() + 1, words.end(), "plot");
  const std::vector<std::string> runs(words.begin(), what);
  std::vector<std::string> metrics(what + 1, words.end());
  if (metrics.empty()) metrics = {"loss"};
  const bool one_metric = metrics.size() == 1 && runs.size() > 1;
  std::vector<NamedCurve> curves;
  for (const std::string& run : runs) {
    std::vector<Curve> read = CurveFile(run + "/metrics.jsonl", metrics).read();
    for (size_t i = 0; i < metrics.size(); ++i)
      curves.push_back({runs.size() == 1 ? metrics[i]
                        : one_metric     ? run
                                         : run + " " + metrics[i],
                        std::move(read[i])});
  }
  const PlotOptions options = {.unicode = locale_is_utf8(),
                               .title = one_metric ? metrics[0] : "",
                               .x_label = "step",
                               .colour = prints_colours()};
  const std::string drawing = overlay(curves, options);
  // Colours are control sequences; names in it are free of them.
  if (options.colour) print_exact_text(true);
  fmt::print("{}", drawing);
  return 0;
}

/// Reads the collectives without a step boundary, since a run that hangs reaches none.
int run_collectives(const Arguments& arguments) {
  no_more_words(arguments, 2);
  const std::string& run = run_dir(arguments);
  if (!is_owned(run))
    fail(
        ExitCode::kUnusable,
        "[tycho ctl] nothing runs in {}; `tycho report {} --collectives` shows what ranks left when it broke",
        run, run);
  fmt::print("{}", waiting_text(ask_for_collectives(run, kWaitForRanks)));
  return 0;
}

}  // namespace

int run_ctl(const Arguments& arguments) {
  run_dir(arguments);
  std::vector<std::pair<std::string, std::function<int(const Arguments&)>>> subverbs;
  for (const CommandSpec& spec : all_commands())
    if (*spec.ctl != '\0' && key_to_set(spec).empty())
      subverbs.emplace_back(spec.ctl, [&spec](const Arguments& given) { return send_command(given, spec); });
  subverbs.insert(
      subverbs.end(),
      {{"set", run_set}, {"tail", run_tail}, {"plot", run_plot}, {"collectives", run_collectives}});
  std::vector<std::string> names;
  for (const auto& [name, run] : subverbs) names.emplace_back(name);
  // Folders of several runs can stand before what to do.
  size_t at = 1;
  const auto& words = arguments.words;
  std::error_code ignored;
  while (at < words.size() && std::find(names.begin(), names.end(), words[at]) == names.end() &&
         std::filesystem::is_directory(words[at], ignored))
    ++at;
  const std::string& what =
      word(arguments, at, fmt::format("what to do: {}", fmt::join(names, ", ")).c_str());
  for (const auto& [name, run] : subverbs) {
    if (what != name) continue;
    if (at > 1 && what != "plot")
      fail(ExitCode::kUsage, "[tycho ctl] {0} expected one run, got {1}: `tycho ctl {2} {0}`", what, at,
           words[0]);
    return run(arguments);
  }
  fail(ExitCode::kUsage, "[tycho ctl] no \"{}\"; available: {}, and before plot further folders of runs{}",
       what, fmt::join(names, ", "), did_you_mean(what, names));
}

}  // namespace tycho
