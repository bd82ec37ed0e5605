// A table that a run shows, as loggers take it: what a model answered. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

struct NamedTable {
  std::string name;  // "icl/words/0-shot"
  std::string file;  // file in the run folder, with one line for each row
  std::vector<std::string> columns;
  std::vector<Json> rows;  // objects with these keys; a row may lack some
};

/// Returns {"columns": [...], "data": [[...], ...]}: pandas' form "split", which W&B and MLflow read.
Json split_form(const NamedTable& table);

}  // namespace tycho
