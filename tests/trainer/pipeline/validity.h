// Checks that tables and programs of a pipeline do all that a step needs, without a deadlock. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/pipeline/program.h"
#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Returns "" when every stage does each of its passes once, none waits forever for its input, and each chunk
/// computes its micro-batches in ascending order; else the first problem.
std::string table_problem(const PipelineShape& shape, const PipelineTable& table);

/// Checks programs like table_problem. Also checks messages: each pass has its input before it begins, each
/// result is sent once to where it is needed, and nothing waits forever when a send returns only after its
/// receive has begun.
std::string program_problem(const PipelineShape& shape, const std::vector<StageProgram>& programs);

}  // namespace tycho
