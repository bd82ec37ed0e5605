// The models that the tests of all models run: every option of every family once.
#pragma once
#include <ostream>
#include <vector>

#include "trainer/layout/model_layout.h"

namespace tycho {

struct ModelCase {
  const char* name;
  ModelConfig config;
  BatchShape shape;
};
inline void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.name; }

std::vector<ModelCase> model_cases();

}  // namespace tycho
