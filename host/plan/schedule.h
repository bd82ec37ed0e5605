// tycho plan --schedule: the pipeline that is asked for, as text and as JSON.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/base/json.h"
#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Parses "1f1b:4x8" (stages x micro-batches), "interleaved:4x8x2" (x chunks), or "1f1b:4", which uses
/// `num_micro_batches`. Throws Error (kUsage) for other texts and for a shape without a schedule table.
PipelineShape pipeline_shape(const std::string& text, int64_t num_micro_batches);

/// Returns a title and a drawing of the schedule.
std::string pipeline_text(const PipelineShape& shape);
/// Returns the shape, its share of idle time, and the activations that each stage holds.
Json pipeline_json(const PipelineShape& shape);

}  // namespace tycho
