// Which ranks have arrived, which have left, and why.
#pragma once
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {

/// Entries of all ranks in a key-value store that rank 0 serves. Used by one thread, except where a function
/// says otherwise.
class RankRegistry {
 public:
  RankRegistry(c10::intrusive_ptr<c10d::Store> store, int rank, int num_ranks)
      : store_(std::move(store)), rank_(rank), num_ranks_(num_ranks) {}

  /// Waits until all ranks have arrived. Throws Error (kTopology) that names those that did not.
  void wait_for_all(double timeout_s);

  /// Records that this rank ends because of `error`. The first reason stays.
  void record_exit(const Error& error);
  /// One look, from any thread. Throws when rank 0 no longer answers.
  bool has_any_left();
  /// Why a collective broke: the reason that a rank left behind, with its exit code; or which ranks are gone
  /// without one (kTerminated): those of `suspects`, the ranks of the collective, unless all of them are
  /// alive. `what`: what the collective said. Also records that this rank is not the cause, since it is about
  /// to end, too.
  Error explain(const std::string& what, const std::vector<int>& suspects);
  /// On rank 0, which serves the store: waits a moment until the others have read why ranks end; for those
  /// that have not noticed yet only if `silent_too`.
  void wait_for_readers(bool silent_too = true);

  /// From any thread: a mark that every rank sees from now on.
  void mark(const std::string& name);
  bool is_marked(const std::string& name);

 private:
  Error find_cause(const std::string& what, const std::vector<int>& suspects);
  void put_reason(const std::string& reason);
  void put(const std::string& key, const std::string& text);
  bool has(const std::string& key);
  std::string get(const std::string& key);

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_, num_ranks_;
  std::string rank_0_;
  bool has_recorded_ = false;
};

}  // namespace tycho
