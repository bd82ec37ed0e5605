// Turns rows of finetuning data into examples on several threads.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/chat/chat_example.h"
#include "trainer/data/rows/skipped_rows.h"

namespace tycho {

/// A line of a file that is not blank.
struct NumberedLine {
  int64_t number = 1;
  std::string_view text;
};

/// Splits text into its lines that are not blank. `first`: number of the first line of `text`.
std::vector<NumberedLine> split_lines(std::string_view text, int64_t first = 1);

/// Calls work_on(i) for the rows 0 to count - 1, from several threads (0: one per core). Throws the Error of
/// the first wrong row, whichever thread met it. Throws Error with the code 128 + signal soon after `stop`
/// holds a signal. `place` names the rows in messages.
void for_each_row(size_t count, const std::function<void(size_t)>& work_on, int threads,
                  const std::string& place, const std::atomic<int>& stop);

/// Calls work_on as for_each_row does. With `skipped`, rows that cannot be used (kUnusable) are counted there
/// instead of thrown. Returns true for each good row.
std::vector<bool> for_each_good_row(size_t count, const std::function<void(size_t)>& work_on, int threads,
                                    const std::string& place, const std::atomic<int>& stop,
                                    SkippedRows* skipped);

/// Returns the examples that `encode` makes of the rows 0 to count - 1, in order. Skips and throws as
/// for_each_good_row does.
std::vector<ChatExample> encode_rows(size_t count, const std::function<ChatExample(size_t)>& encode,
                                     const std::string& place, const std::atomic<int>& stop,
                                     SkippedRows* skipped = nullptr);

}  // namespace tycho
