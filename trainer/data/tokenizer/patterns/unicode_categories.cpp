// Reads the table of categories once.
#include "trainer/data/tokenizer/patterns/unicode_categories.h"

#include "trainer/data/tokenizer/patterns/unicode_category_runs.h"

namespace tycho {
namespace {

/// Consecutive code points of one category.
struct CategoryRun {
  CodeRange codes;
  uint8_t category;
};

std::vector<CategoryRun> read_runs() {
  std::vector<CategoryRun> runs;
  uint32_t next = 0;
  for (const char* at = kCategoryRuns; *at != '\0';) {
    const char letter = *at++;
    uint32_t count = 0;
    while (*at >= '0' && *at <= '9') count = count * 10 + static_cast<uint32_t>(*at++ - '0');
    const int category = letter >= 'a' ? letter - 'a' + 26 : letter - 'A';
    runs.push_back({{next, next + count - 1}, static_cast<uint8_t>(category)});
    next += count;
  }
  return runs;
}

const std::vector<CategoryRun>& category_runs() {
  static const std::vector<CategoryRun> runs = read_runs();
  return runs;
}

std::vector<uint8_t> expand_runs() {
  std::vector<uint8_t> categories;
  categories.reserve(kCodePoints);
  for (const CategoryRun& run : category_runs())
    categories.insert(categories.end(), run.codes.last - run.codes.first + 1, run.category);
  return categories;
}

}  // namespace

const uint8_t* categories() {
  static const std::vector<uint8_t> table = expand_runs();
  return table.data();
}

// Walks a few thousand runs, not a million code points, because a pattern asks for several categories.
std::vector<CodeRange> ranges_of(uint32_t mask) {
  std::vector<CodeRange> ranges;
  for (const CategoryRun& run : category_runs()) {
    if ((mask >> run.category & 1) == 0) continue;
    if (!ranges.empty() && ranges.back().last + 1 == run.codes.first) {
      ranges.back().last = run.codes.last;
    } else {
      ranges.push_back(run.codes);
    }
  }
  return ranges;
}

}  // namespace tycho
