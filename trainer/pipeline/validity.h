// Whether tables and programs of a pipeline do all that a step needs, without a deadlock. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/pipeline/program.h"
#include "trainer/pipeline/schedule.h"

namespace tycho {

/// "" when every stage does each of its passes once, none waits for ever for its input, and each chunk
/// computes its micro-batches in ascending order; else the first thing that is wrong.
std::string table_problem(const PipelineShape& shape, const PipelineTable& table);

/// The same for programs. Messages: each pass has the input that it needs before it begins, each result goes
/// where it is needed once, and nothing waits for ever when a send returns only after its receive has begun.
std::string program_problem(const PipelineShape& shape, const std::vector<StageProgram>& programs);

}  // namespace tycho
