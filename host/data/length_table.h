// Lengths of samples and documents, for people and as JSON.
#pragma once
#include "trainer/base/json.h"
#include "trainer/data/prepare/dataset_stats.h"

namespace tycho {

/// Returns the number of lengths, quantiles, and counts from each power of two up to the next.
Json lengths_json(const LengthCounts& lengths);
/// Prints the contents of lengths_json as lines with bars. `what` has these lengths, counted in `unit`:
/// "documents", "tokens".
void print_lengths(const char* what, const char* unit, const LengthCounts& lengths);

}  // namespace tycho
