// The models that the tests of all models run: every option of every family once.
#pragma once
#include <ostream>
#include <vector>

#include "trainer/layout/model_layout.h"
#include "trainer/models/model.h"

namespace tycho {

struct ModelCase {
  const char* name;
  ModelConfig config;
  BatchShape shape;
};
inline void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.name; }

std::vector<ModelCase> model_cases();

/// The `i`-th micro-batch of a step: its targets are the next tokens.
inline MicroBatch numbered_micro_batch(const std::vector<Tensor>& tokens, int64_t i, bool first, bool last) {
  return {.tokens_N = tokens[static_cast<size_t>(i)],
          .targets_N = tokens[static_cast<size_t>(i) + 1],
          .first = first,
          .last = last,
          .dropout_key = static_cast<uint64_t>(i) + 99};
}

}  // namespace tycho
