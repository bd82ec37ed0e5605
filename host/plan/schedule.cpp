// Reads the option; what it names is drawn by trainer/pipeline.
#include "host/plan/schedule.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/pipeline/drawing.h"
#include "trainer/pipeline/program.h"
#include "trainer/pipeline/simulation.h"

namespace tycho {
namespace {

constexpr int64_t kMostPasses = 1 << 20;

/// Returns the numbers of "4x8x2"; nullopt for other texts.
std::optional<std::vector<int>> sizes_of(const std::string& text) {
  std::vector<int> sizes;
  const char *at = text.data(), *const end = text.data() + text.size();
  while (true) {
    int size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc()) return {};
    sizes.push_back(size);
    if (next == end) return sizes;
    if (*next != 'x') return {};
    at = next + 1;
  }
}

std::optional<PipelineSchedule> schedule_named(const std::string& name) {
  for (const auto& [known, schedule] : enum_names(PipelineSchedule()))
    if (name == known) return schedule;
  return {};
}

}  // namespace

PipelineShape pipeline_shape(const std::string& text, int64_t num_micro_batches) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::optional<PipelineSchedule> schedule = schedule_named(text.substr(0, colon));
  const auto sizes = sizes_of(text.substr(std::min(colon + 1, text.size())));
  if (!schedule || !sizes || sizes->size() > 3)
    fail(ExitCode::kUsage,
         "[tycho plan] --schedule expected gpipe, 1f1b or interleaved, a colon, and stages x micro-batches x "
         "chunks, such as 1f1b:4x8 or interleaved:4x8x2; got \"{}\"",
         text);
  PipelineShape shape = {*schedule, sizes->front(), static_cast<int>(num_micro_batches), 1};
  if (sizes->size() > 1) shape.num_micro_batches = (*sizes)[1];
  if (sizes->size() > 2) shape.num_chunks = (*sizes)[2];
  if (const std::string problem = shape_problem(shape); !problem.empty())
    fail(ExitCode::kUsage, "[tycho plan] --schedule {}: {}", text, problem);
  if (static_cast<double>(shape.num_stages) * shape.num_micro_batches * shape.num_chunks > kMostPasses)
    fail(ExitCode::kUsage, "[tycho plan] --schedule {}: expected at most {} forward passes, of all stages",
         text, kMostPasses);
  return shape;
}

std::string pipeline_text(const PipelineShape& shape) {
  const auto count = [](int n, const char* one, const char* many) {
    return fmt::format("{} {}", n, n == 1 ? one : many);
  };
  return fmt::format("pipeline: {}, {}, {}{}\n{}", name_of(shape.schedule),
                     count(shape.num_stages, "stage", "stages"),
                     count(shape.num_micro_batches, "micro-batch", "micro-batches"),
                     shape.num_chunks > 1 ? fmt::format(", {} chunks on each stage", shape.num_chunks) : "",
                     draw_pipeline(shape));
}

Json pipeline_json(const PipelineShape& shape) {
  const PipelineTable table = pipeline_table(shape);
  Json held = Json::array();
  for (const StageProgram& program : pipeline_programs(shape, table))
    held.push_back(pipeline_holds(program).activations);
  return {{"schedule", name_of(shape.schedule)},
          {"stages", shape.num_stages},
          {"micro_batches", shape.num_micro_batches},
          {"chunks", shape.num_chunks},
          {"idle_share", simulate_pipeline(shape, table, equal_costs(shape)).idle_share},
          {"held_activations", std::move(held)}};
}

}  // namespace tycho
