// Records how many numbers the shuffles of an epoch draw, so that a run can start in the middle of the epoch
// without drawing them again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {

/// Numbers of words drawn between two marks, under a hash of these numbers and of all that they depend on:
/// plain data, saved in checkpoints. Entries that match no shuffle are ignored.
using OrderMarks = std::map<std::string, std::vector<uint64_t>>;

/// The marks of one order while its shuffles are set up: each series in turn notes its marks, or reads them
/// back. Throws Error (kUnusable) for numbers that do not fit the order.
class MarkBook {
 public:
  enum class Use { kNone, kNote, kRead };

  /// A mark follows a shuffle when the shuffles since the last mark have at least `between` items in all, and
  /// follows the last shuffle of a series.
  MarkBook(Use use, size_t between, std::vector<uint64_t> words = {})
      : use_(use), between_(between), words_(std::move(words)) {}

  Use use() const { return use_; }
  size_t between() const { return between_; }
  void note(uint64_t words) { words_.push_back(words); }
  uint64_t read() {
    if (at_end()) do_not_fit();
    return words_[at_++];
  }
  bool at_end() const { return at_ == words_.size(); }
  const std::vector<uint64_t>& words() const { return words_; }

  [[noreturn]] static void do_not_fit() {
    fail(ExitCode::kUnusable,
         "[order] order_marks of the checkpoint do not lead where the order of samples leads: the checkpoint "
         "is damaged; resume from another one");
  }

 private:
  Use use_;
  size_t between_;
  std::vector<uint64_t> words_;
  size_t at_ = 0;  // index of the next word to read
};

}  // namespace tycho
