// What the shuffles of an epoch draw, noted so that the epoch can be begun in its middle without drawing it
// again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {

/// Words drawn from one mark to the next, under the hash of them and of all that they depend on: plain data,
/// saved in checkpoints. What belongs to no shuffle is ignored.
using OrderMarks = std::map<std::string, std::vector<uint64_t>>;

/// The marks of one order while its shuffles are set up: series after series either notes its own, or reads
/// them back. Numbers that do not fit the order are an Error (kUnusable).
class MarkBook {
 public:
  enum class Use { kNone, kNote, kRead };

  /// A mark stands after a shuffle when those since the mark before have at least `between` items, and after
  /// the last shuffle of a series.
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
  size_t at_ = 0;  // of those that are read
};

}  // namespace tycho
