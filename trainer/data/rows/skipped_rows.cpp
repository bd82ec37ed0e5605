// Keeps only the first reasons, which are enough to find out what is wrong with a file.
#include "trainer/data/rows/skipped_rows.h"

namespace tycho {

void SkippedRows::add(const std::string& reason) {
  ++count;
  if (reasons.size() < kReasonsKept) reasons.push_back(reason);
}

void SkippedRows::add(const SkippedRows& more) {
  count += more.count;
  for (const std::string& reason : more.reasons)
    if (reasons.size() < kReasonsKept) reasons.push_back(reason);
}

std::string SkippedRows::text() const {
  if (count == 0) return "";
  std::string text = fmt::format("{} {} cannot be used and {} skipped", count, count == 1 ? "row" : "rows",
                                 count == 1 ? "is" : "are");
  for (size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? ", such as " : "; ") + reasons[i];
  return text;
}

}  // namespace tycho
