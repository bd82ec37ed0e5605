// tycho plan --schedule: the pipeline that is asked for, as text and as JSON.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/base/json.h"
#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Of "1f1b:4x8" (stages x micro-batches), "interleaved:4x8x2" (x chunks), or "1f1b:4", which takes
/// `num_micro_batches`. Throws Error (kUsage) for other texts and for a shape that has no table.
PipelineShape pipeline_shape(const std::string& text, int64_t num_micro_batches);

/// A title and its drawing.
std::string pipeline_text(const PipelineShape& shape);
/// The shape, its share of time without work, and the activations that each stage holds.
Json pipeline_json(const PipelineShape& shape);

}  // namespace tycho
