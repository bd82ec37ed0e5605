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
inline Json split_form(const NamedTable& table) {
  Json data = Json::array();
  for (const Json& row : table.rows) {
    Json cells = Json::array();
    for (const std::string& column : table.columns) cells.push_back(row.value(column, Json()));
    data.push_back(std::move(cells));
  }
  return {{"columns", table.columns}, {"data", std::move(data)}};
}

}  // namespace tycho
