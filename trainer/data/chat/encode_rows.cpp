// Threads take blocks of rows in order.
#include "trainer/data/chat/encode_rows.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/in_parallel.h"

namespace tycho {
namespace {

constexpr size_t kRowsPerBlock = 64;

}  // namespace

std::vector<NumberedLine> split_lines(std::string_view text, int64_t first) {
  std::vector<NumberedLine> lines;
  int64_t number = first;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({number, line});
    begin = end + 1;
  }
  return lines;
}

void for_each_row(size_t count, const std::function<void(size_t)>& work_on, int threads,
                  const std::string& place, const std::atomic<int>& stop) {
  const size_t num_blocks = (count + kRowsPerBlock - 1) / kRowsPerBlock;
  const size_t most = threads > 0 ? static_cast<size_t>(threads) : std::thread::hardware_concurrency();
  in_parallel(num_blocks, most, [&](size_t block) {
    const size_t end = std::min(count, (block + 1) * kRowsPerBlock);
    for (size_t i = block * kRowsPerBlock; i < end && stop == 0; ++i) work_on(i);
  });
  if (const int signal = stop; signal != 0)
    fail(static_cast<ExitCode>(128 + signal),
         "[data] stopped by SIG{} while {} was tokenised: nothing was started", sigabbrev_np(signal), place);
}

std::vector<bool> for_each_good_row(size_t count, const std::function<void(size_t)>& work_on, int threads,
                                    const std::string& place, const std::atomic<int>& stop,
                                    SkippedRows* skipped) {
  std::mutex mutex;
  std::map<size_t, std::string> bad;  // reasons
  const auto try_row = [&](size_t i) {
    try {
      work_on(i);
    } catch (const Error& error) {
      if (skipped == nullptr || error.code() != ExitCode::kUnusable) throw;
      const std::lock_guard lock(mutex);
      bad.emplace(i, error.what());
    }
  };
  for_each_row(count, try_row, threads, place, stop);
  std::vector<bool> is_good(count, true);
  for (const auto& [i, reason] : bad) {
    skipped->add(reason);
    is_good[i] = false;
  }
  return is_good;
}

std::vector<ChatExample> encode_rows(size_t count, const std::function<ChatExample(size_t)>& encode,
                                     const std::string& place, const std::atomic<int>& stop,
                                     SkippedRows* skipped) {
  std::vector<ChatExample> examples(count);
  const std::vector<bool> is_good = for_each_good_row(
      count, [&](size_t i) { examples[i] = encode(i); }, /*threads=*/0, place, stop, skipped);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_good[i]) continue;
    if (kept != i) examples[kept] = std::move(examples[i]);
    ++kept;
  }
  examples.resize(kept);
  return examples;
}

}  // namespace tycho
