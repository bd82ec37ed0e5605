// Counts blocks and parts.
#include "trainer/recipe/pipeline_parallel.h"

#include <numeric>
#include <variant>

namespace tycho {

void check_pipeline(const TrainConfig& config, ConfigProblems& problems) {
  const ParallelConfig& parallel = config.parallel;
  if (parallel.pp == 1) return;
  const int64_t layers = std::visit([](const auto& model) { return model.layers; }, config.model.value);
  const int64_t parts = parallel.pp * parallel.pp_chunks;
  if (parts > layers)
    return problems.add("parallel.pp",
                        "{} stages with {} chunk{} each need {} blocks or more, and the model has {}; set "
                        "parallel.pp to {} or less",
                        parallel.pp, parallel.pp_chunks, parallel.pp_chunks == 1 ? "" : "s", parts, layers,
                        std::max<int64_t>(1, layers / parallel.pp_chunks));
  const auto given = static_cast<int64_t>(parallel.pp_layers.size());
  if (given == 0) return;
  if (given != parts)
    return problems.add(
        "parallel.pp_layers",
        "{} numbers for {} parts of the model; write one for each chunk of each stage, in the order of "
        "the model, or leave it empty",
        given, parts);
  const int64_t sum = std::accumulate(parallel.pp_layers.begin(), parallel.pp_layers.end(), int64_t{0});
  if (sum != layers)
    problems.add("parallel.pp_layers",
                 "adds up to {} blocks, and the model has {}; write numbers that add up to {}", sum, layers,
                 layers);
}

}  // namespace tycho
