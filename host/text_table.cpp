// Lays out tables.
#include "host/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tycho {
namespace {

bool looks_like_number(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell[0] == '-');
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<bool> numbers;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    numbers.resize(widths.size(), rows.size() > 1);
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      if (&row != &rows.front() && !looks_like_number(row[i])) numbers[i] = false;
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string gap = i == 0 ? "" : "  ";
      line += gap + (numbers[i] ? fmt::format("{:>{}}", row[i], widths[i])
                                : fmt::format("{:<{}}", row[i], widths[i]));
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace tycho
