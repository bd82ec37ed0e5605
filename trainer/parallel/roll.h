// Membership of a run: which ranks are present, and why they left.
#pragma once
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/base/error.h"

namespace tycho {

/// Kept in a store that rank 0 serves. Used by one thread, but for the marks.
class Roll {
 public:
  Roll(c10::intrusive_ptr<c10d::Store> store, int rank, int num_ranks)
      : store_(std::move(store)), rank_(rank), num_ranks_(num_ranks) {}

  /// Waits until all have come. Throws Error (kTopology) that names those who did not.
  void call(double timeout_s);

  /// This rank ends because of `error`.
  void say_why(const Error& error);
  /// One look; throws when rank 0 is not there any more.
  bool somebody_left();
  /// Why a collective broke: what the rank that left said, with its code; or who has gone without a word
  /// (kTerminated). `what`: what the collective said. This rank is about to end, too.
  Error explain(const std::string& what);
  /// On rank 0, which serves the store: waits a moment until the others have read why it ends.
  void wait_for_readers();

  /// From any thread: a mark that every rank sees from now on.
  void mark(const std::string& name);
  bool is_marked(const std::string& name);

 private:
  void say(const std::string& words);
  void put(const std::string& key, const std::string& text);
  bool has(const std::string& key);
  std::string get(const std::string& key);

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_, num_ranks_;
  std::string rank_0_;
  bool said_ = false;
};

}  // namespace tycho
