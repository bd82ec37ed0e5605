// One column of cells for each forward pass's time, cut into bands that fit on a terminal.
#include "trainer/pipeline/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/pipeline/program.h"
#include "trainer/pipeline/simulation.h"

namespace tycho {
namespace {

constexpr size_t kColumns = 80, kShownBands = 4;

/// Returns the name of a pass: the chunk as a letter if there are several, and the micro-batch: "b12".
std::string name_of_pass(const PipelineShape& shape, const PipelineAction& action) {
  const std::string number = std::to_string(action.micro_batch);
  if (shape.num_chunks == 1) return number;
  return shape.num_chunks <= 26 ? std::string(1, static_cast<char>('a' + action.chunk)) + number
                                : fmt::format("{}:{}", action.chunk, number);
}

size_t cell_width(const PipelineShape& shape) {
  return 1 + name_of_pass(shape,
                          {PipelineAction::Kind::kForward, shape.num_chunks - 1, shape.num_micro_batches - 1})
                 .size();
}

/// Returns a stage's whole step: "3" is a forward pass, "3==" a backward pass, "." an idle cell.
std::string row_of(const PipelineShape& shape, const StageActions& actions,
                   const std::vector<PipelineTimes::Span>& spans, size_t num_cells) {
  const size_t width = cell_width(shape);
  std::string row(num_cells * width, ' ');
  for (size_t cell = 0; cell < num_cells; ++cell) row[cell * width] = '.';
  for (size_t i = 0; i < actions.size(); ++i) {
    const size_t begin = static_cast<size_t>(std::lround(spans[i].begin_s)) * width;
    const size_t end = static_cast<size_t>(std::lround(spans[i].end_s)) * width - 1;
    const bool forward = actions[i].kind == PipelineAction::Kind::kForward;
    row.replace(begin, end - begin,
                fmt::format(fmt::runtime(forward ? "{: <{}}" : "{:=<{}}"), name_of_pass(shape, actions[i]),
                            end - begin));
  }
  return row;
}

/// Returns the same range of columns of all rows.
std::string band(const std::vector<std::string>& rows, size_t begin, size_t columns) {
  const size_t label = std::to_string(rows.size() - 1).size();
  std::string text;
  for (size_t stage = 0; stage < rows.size(); ++stage) {
    std::string line = fmt::format("  stage {:<{}}  {}", stage, label, rows[stage].substr(begin, columns));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bands(const PipelineShape& shape, const std::vector<std::string>& rows) {
  const size_t label = fmt::format("  stage {}  ", rows.size() - 1).size(), width = cell_width(shape);
  const size_t columns = std::max<size_t>(1, (kColumns - label) / width) * width;
  const size_t num_bands = (rows.front().size() + columns - 1) / columns;
  std::string text;
  for (size_t i = 0; i < num_bands; ++i) {
    if (i > 0) text += "\n";
    if (num_bands > kShownBands && i == kShownBands - 2) {
      text += fmt::format("  ... {} more like these\n\n", num_bands - kShownBands + 1);
      i = num_bands - 1;
    }
    text += band(rows, i * columns, columns);
  }
  return text;
}

std::string holds_text(const PipelineShape& shape, const PipelineTable& table) {
  const std::vector<StageProgram> programs = pipeline_programs(shape, table);
  const int first = pipeline_holds(programs.front()).activations;
  const int last = pipeline_holds(programs.back()).activations;
  const std::string last_text =
      first == last ? "" : fmt::format(", {} on stage {}", last, shape.num_stages - 1);
  return fmt::format("  activations held at once, each of {}: {} on stage 0{}\n",
                     shape.num_chunks > 1 ? "one chunk" : "a micro-batch", first, last_text);
}

}  // namespace

std::string draw_pipeline(const PipelineShape& shape) {
  const PipelineTable table = pipeline_table(shape);
  const PipelineTimes times = simulate_pipeline(shape, table, equal_costs(shape));
  const auto num_cells = static_cast<size_t>(std::lround(times.step_s));
  std::vector<std::string> rows;
  for (size_t stage = 0; stage < table.size(); ++stage)
    rows.push_back(row_of(shape, table[stage], times.spans[stage], num_cells));
  const char* chunk = shape.num_chunks > 1 ? "a" : "";
  return bands(shape, rows) +
         fmt::format("  {}0 forward, {}0== backward pass of micro-batch 0{}\n", chunk, chunk,
                     shape.num_chunks > 1 ? " through chunk a of a stage" : "") +
         fmt::format("  . no work, {:.1f} % of the time\n", 100 * times.idle_share) +
         holds_text(shape, table);
}

}  // namespace tycho
