// A picture of a pipeline step: what each stage computes when, and where it is idle. Torch-free.
#pragma once
#include <string>

#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Returns lines of at most 80 columns, each with a line end, for a shape without problem: a row for each
/// stage, for parts of equal cost whose backward pass takes twice as long as their forward pass. A long step
/// is drawn in several bands, and only its beginning and end when there are many. Below them are the share of
/// idle time and the activations that stages hold.
std::string draw_pipeline(const PipelineShape& shape);

}  // namespace tycho
