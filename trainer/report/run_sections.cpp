// Compares recipes, and lays texts of the same prompt and step side by side.
#include "trainer/report/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "trainer/metrics/format.h"
#include "trainer/report/html_page.h"
#include "trainer/report/svg.h"

namespace tycho {
namespace {

constexpr size_t kMostPrompts = 20, kMostSteps = 20;
constexpr int kMostLetters = 2000;

/// Lists the leaves of a recipe with their values as JSON; "" is the path of a recipe that is none.
void list_leaves(const Json& value, const std::string& path,
                 std::vector<std::pair<std::string, std::string>>& leaves) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, child] : value.items())
      list_leaves(child, path.empty() ? key : path + "." + key, leaves);
  } else {
    leaves.emplace_back(path, value.is_string() ? value.get<std::string>()
                                                : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

/// The recipes of runs as a table.
struct Leaves {
  std::vector<std::string> keys;                           // in the order of the first recipe that has them
  std::vector<std::map<std::string, std::string>> values;  // of each run, by key
};

Leaves leaves_of(const std::vector<RunSummary>& runs) {
  Leaves all;
  std::set<std::string> known = {"run_name", "run_dir"};
  for (const RunSummary& run : runs) {
    std::vector<std::pair<std::string, std::string>> leaves;
    if (run.recipe.is_object()) list_leaves(run.recipe, "", leaves);
    all.values.emplace_back();
    for (const auto& [key, value] : leaves) {
      all.values.back()[key] = value;
      if (known.insert(key).second) all.keys.push_back(key);
    }
  }
  return all;
}

/// Returns at most kMostSteps of the steps: the last, the first, and some between.
std::vector<int64_t> some_steps(const std::set<int64_t>& steps) {
  const std::vector<int64_t> all(steps.rbegin(), steps.rend());
  if (all.size() <= kMostSteps) return all;
  std::vector<int64_t> some;
  for (size_t i = 0; i < kMostSteps; ++i) some.push_back(all[i * (all.size() - 1) / (kMostSteps - 1)]);
  return some;
}

std::string text_of(const RunSummary& run, const std::string& prompt, int64_t step) {
  for (const RecordedText& one : run.texts)
    if (one.step == step && one.prompt == prompt) return cut_to_width(one.text, kMostLetters, true);
  return "";
}

/// Returns the texts of a prompt as a table: a row for each step, a column for each run that has texts.
std::string prompt_block(const std::vector<const RunSummary*>& runs, const std::string& prompt) {
  std::set<int64_t> steps;
  for (const RunSummary* run : runs)
    for (const RecordedText& one : run->texts)
      if (one.prompt == prompt) steps.insert(one.step);
  std::vector<std::string> header = {"step"};
  for (const RunSummary* run : runs) header.push_back(run->name);
  std::vector<std::vector<std::string>> newest = {header}, older = {header};
  for (const int64_t step : some_steps(steps)) {
    std::vector<std::string> row = {std::to_string(step)};
    for (const RunSummary* run : runs) row.push_back(text_of(*run, prompt, step));
    (newest.size() == 1 ? newest : older).push_back(row);
  }
  std::string block =
      fmt::format("<div class=\"texts\"><h3>{}</h3>{}", escape_html(prompt), html_table(newest));
  if (older.size() > 1)
    block += fmt::format("<details><summary>{} of {} earlier steps</summary>{}</details>", older.size() - 1,
                         steps.size() - 1, html_table(older));
  return block + "</div>\n";
}

}  // namespace

std::string configuration_section(const std::vector<RunSummary>& runs) {
  const Leaves all = leaves_of(runs);
  if (all.keys.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"key"}};
  for (const RunSummary& run : runs) rows[0].push_back(run.name);
  for (const std::string& key : all.keys) {
    std::vector<std::string> row = {key};
    for (const auto& values : all.values)
      row.push_back(values.contains(key) ? values.at(key) : "(no such key)");
    const bool equal =
        std::all_of(row.begin() + 1, row.end(), [&](const std::string& value) { return value == row[1]; });
    if (runs.size() == 1 || !equal) rows.push_back(row);
  }
  if (runs.size() == 1)
    return html_section("Configuration", fmt::format("<details><summary>{} keys</summary>{}</details>\n",
                                                     all.keys.size(), html_table(rows)));
  const size_t equal = all.keys.size() + 1 - rows.size();
  return html_section("Configuration", (rows.size() > 1 ? html_table(rows) : "") +
                                           fmt::format("<p class=\"rule\">{} {} equal in all runs.</p>\n",
                                                       equal, equal == 1 ? "key is" : "keys are"));
}

std::string texts_section(const std::vector<RunSummary>& runs) {
  std::vector<const RunSummary*> with_texts;
  std::vector<std::string> prompts;
  for (const RunSummary& run : runs) {
    if (!run.texts.empty()) with_texts.push_back(&run);
    for (const RecordedText& one : run.texts)
      if (std::find(prompts.begin(), prompts.end(), one.prompt) == prompts.end())
        prompts.push_back(one.prompt);
  }
  std::string blocks;
  for (size_t i = 0; i < std::min(prompts.size(), kMostPrompts); ++i)
    blocks += prompt_block(with_texts, prompts[i]);
  if (prompts.size() > kMostPrompts)
    blocks += fmt::format("<p class=\"rule\">{} further names are in events.jsonl.</p>\n",
                          prompts.size() - kMostPrompts);
  return html_section("Texts", blocks);
}

}  // namespace tycho
