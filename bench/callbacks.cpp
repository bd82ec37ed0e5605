// What 20 callbacks in Lua cost a step, and how soon one that does not end is ended.
//   build/cpu/bench/bench_callbacks
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bindings/define/watch.h"
#include "bindings/run/lua_callbacks.h"
#include "trainer/callbacks/runner.h"

namespace {

using namespace tycho;
using Clock = std::chrono::steady_clock;

constexpr int kCallbacks = 20;
constexpr int64_t kSteps = 20'000;
constexpr int kInterrupts = 40;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A recipe whose callbacks do what the loss-spike guard of docs/callbacks.md does at every step.
const char* const kRecipe = R"(
local t = require "tycho"
local r = t.recipe "bench"
r.max_duration = "100000ba"
r.model = t.model.llama { width = 64, heads = 4, layers = 2, ffn_width = 128 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.train_data = t.data.mds { local_dir = "data" }
for i = 1, %d do
  r.callbacks["c" .. i] = t.control {
    state = { mean = 0, var = 0, quiet = 0 },
    batch_end = function(ctx, st)
      local above = ctx.loss - st.mean
      if ctx.step > 100 and above > 6 * math.sqrt(st.var) and st.quiet == 0 then
        ctx.cmd.scale_lr(0.5, { for_next = "200ba" })
        st.quiet = 200
      end
      st.quiet = math.max(0, st.quiet - 1)
      st.mean, st.var = st.mean + 0.02 * above, 0.98 * (st.var + 0.02 * above * above)
    end,
  }
end
r.callbacks.endless = t.observe { eval_end = function() while true do end end }
return r
)";

void print_distribution(const char* what, std::vector<double> values, double scale, const char* unit) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return scale * values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  fmt::print("{}: p50 {:.1f}  p90 {:.1f}  p99 {:.1f}  p99.9 {:.1f}  max {:.1f} {}\n", what, at(0.5), at(0.9),
             at(0.99), at(0.999), at(1), unit);
}

/// Seconds from an interrupt to the end of a callback that does not end by itself.
double interrupt_once(CallbackRunner& runner, const StepMetrics& metrics, const RunInfo& run) {
  std::atomic<Clock::rep> pressed = 0;
  std::thread presses([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    pressed = Clock::now().time_since_epoch().count();
    LuaWatch::interrupt();
  });
  runner.announce({Event::kEvalEnd, metrics, run});
  const Clock::time_point ended = Clock::now();
  presses.join();
  return std::chrono::duration<double>(ended.time_since_epoch() - Clock::duration(pressed.load())).count();
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "bench-callbacks-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  RecipeRequest request;
  request.file = folder + "/bench.lua";
  std::string recipe = kRecipe;
  recipe.replace(recipe.find("%d"), 2, std::to_string(kCallbacks));
  std::ofstream(request.file) << recipe;
  const ResolvedRecipe resolved = resolve_recipe(request);
  std::filesystem::remove_all(folder);

  LuaCallbacks source(resolved);
  Reporter quiet;
  CallbackRunner runner(source.callbacks(),
                        {.reporter = quiet,
                         .gather = [](const std::string& mine) { return std::vector<std::string>{mine}; },
                         .in_steps = [](const Duration& duration) { return duration.value; }});
  RunInfo run;
  run.total_steps = kSteps;
  StepMetrics metrics;
  std::vector<double> steps, interrupts;
  for (int64_t step = 1; step <= kSteps; ++step) {
    metrics.step = step;
    metrics.loss = 2 + 0.1 * static_cast<double>(step % 7);
    const auto start = Clock::now();
    runner.announce({Event::kBatchEnd, metrics, run});
    runner.boundary(step, {}, 0);
    steps.push_back(seconds_since(start));
  }
  for (int i = 0; i < kInterrupts; ++i) interrupts.push_back(interrupt_once(runner, metrics, run));
  print_distribution(fmt::format("{} callbacks, one step", kCallbacks).c_str(), steps, 1e6, "us");
  print_distribution("Ctrl-C to the end of an endless callback", interrupts, 1e3, "ms");
  return 0;
}
