// Every recipe is resolved, checked and planned in this process; LibTorch is not needed.
#include "host/test/try_recipes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "bindings/define/recipe.h"
#include "bindings/import/import.h"
#include "host/sweep/start.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/metrics/format.h"
#include "trainer/plan/plan.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// A recipe and its verdict.
struct Attempt {
  std::string file;
  RecipeVerdict verdict;
};

std::string place_of(const std::string& file) { return fs::weakly_canonical(fs::absolute(file)).string(); }

/// Returns steps and parameters in a few words. Throws Error for an impossible plan.
std::string plan_line(const TrainConfig& config) {
  const Plan plan = make_plan(config);
  const std::string steps = plan.steps > 0 ? fmt::format("{} steps", plan.steps) : config.max_duration.str();
  return fmt::format("{} parameters, {}", short_text(static_cast<double>(plan.num_params)), steps);
}

TriedRecipe try_sweep(const std::string& file) {
  try {
    const PreparedSweep sweep = prepare_sweep({.file = file});
    return {file, "ok", "", fmt::format("a sweep of {} trials", sweep.definition.trials.size())};
  } catch (const Error& error) {
    if (error.code() == ExitCode::kInterrupted) throw;
    return {file, "FAILED", "", error.what()};
  }
}

TriedRecipe judge(const Attempt& attempt, const std::set<std::string>& extended) {
  const RecipeVerdict& verdict = attempt.verdict;
  if (verdict.recipe) {
    try {
      return {attempt.file, "ok", verdict.recipe->hash, plan_line(verdict.recipe->config)};
    } catch (const Error& error) {
      return {attempt.file, "FAILED", "", error.what()};
    }
  }
  if (verdict.kind == "open" && (verdict.open_on_purpose || extended.contains(place_of(attempt.file))))
    return {attempt.file, "base", "", fmt::format("requires {}", fmt::join(verdict.open, ", "))};
  if (verdict.kind == "absent")
    return {attempt.file, "absent", "", verdict.report.substr(0, verdict.report.find('\n'))};
  return {attempt.file, "FAILED", "", verdict.report};
}

Attempt try_one(const std::string& file, bool trace) {
  RecipeRequest request = {.file = file, .trace = trace};
  try {
    import_request(request);
    return {file, try_recipe(request)};
  } catch (const Error& error) {
    if (error.code() == ExitCode::kInterrupted) throw;
    return {file, {.report = error.what(), .kind = "wrong"}};
  }
}

}  // namespace

bool makes_recipe(const std::string& text) {
  if (is_sweep_text(text)) return true;
  for (const char* call : {".recipe", ":extend"}) {
    const size_t length = std::string_view(call).size();
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
      const size_t next = text.find_first_not_of(" \t", at + length);
      if (next != std::string::npos && std::string_view("\"'(").find(text[next]) != std::string::npos)
        return true;
    }
  }
  return false;
}

std::vector<TriedRecipe> try_recipes(const std::vector<std::string>& files, bool named, bool trace) {
  std::vector<TriedRecipe> tried;
  std::vector<Attempt> attempts;
  std::set<std::string> extended;  // files that another recipe extends
  for (const std::string& file : files) {
    if (!is_foreign_recipe(file) && is_sweep_text(read_file(file))) {
      tried.push_back(try_sweep(file));
      continue;
    }
    attempts.push_back(try_one(file, trace));
    for (const std::string& source : attempts.back().verdict.files)
      if (place_of(source) != place_of(file)) extended.insert(place_of(source));
  }
  for (const Attempt& attempt : attempts)
    if (named || attempt.verdict.kind != "no recipe") tried.push_back(judge(attempt, extended));
  std::sort(tried.begin(), tried.end(),
            [](const TriedRecipe& a, const TriedRecipe& b) { return a.file < b.file; });
  return tried;
}

}  // namespace tycho
