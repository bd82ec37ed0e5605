// The form of a table in loggers' files and requests.
#include "trainer/metrics/named_table.h"

#include <utility>

namespace tycho {

Json split_form(const NamedTable& table) {
  Json data = Json::array();
  for (const Json& row : table.rows) {
    Json cells = Json::array();
    for (const std::string& column : table.columns) cells.push_back(row.value(column, Json()));
    data.push_back(std::move(cells));
  }
  return {{"columns", table.columns}, {"data", std::move(data)}};
}

}  // namespace tycho
