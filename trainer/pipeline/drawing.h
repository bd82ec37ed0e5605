// A picture of a pipeline step: what each stage computes when, and where it is idle. Torch-free.
#pragma once
#include <string>

#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Lines of at most 80 columns, each ended, of a shape without problem: a row for each stage, drawn for parts
/// of equal cost whose backward pass takes twice as long as their forward pass. A long step is drawn in
/// several bands, and only its beginning and its end when there are many. Below them the share of time
/// without work, and the activations that stages hold.
std::string draw_pipeline(const PipelineShape& shape);

}  // namespace tycho
