// The folder of a sweep: its ledger and the board made of it, kept up to date. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/sweep/board.h"
#include "trainer/sweep/definition.h"
#include "trainer/sweep/ledger.h"

namespace tycho {

/// Owned by one thread.
class SweepFolder {
 public:
  /// An existing or a new folder. Nothing is written yet.
  SweepFolder(FileOps& files, const std::string& dir);

  /// Takes what others wrote since the last call. Throws Error (kUnusable).
  void refresh();
  /// Appends a fact and takes it, with what others wrote meanwhile. `durable`: as Ledger::append has it.
  void record(const Json& fact, bool durable = true);
  /// Shows on this board alone, for people, which trials are lost: nothing is written.
  void show_lost_trials();
  /// Makes `definition` the plan that holds; true when it was not already.
  bool set_definition(const SweepDefinition& definition);
  /// Rewrites a ledger that is mostly history.
  void compact_if_due();

  const Board& board() const { return board_; }
  /// Absolute.
  const std::string& dir() const { return dir_; }
  int64_t damaged_lines() const { return ledger_.damaged(); }
  std::string run_dir(const Trial& trial) const { return Board::run_dir(dir_, trial); }

 private:
  FileOps& files_;
  std::string dir_;
  Ledger ledger_;
  Board board_;
  int64_t num_facts_ = 0;
};

/// The ends, for record(), of trials that the ledger has as worked on and whose workers one look shows to be
/// gone.
std::vector<Json> ends_of_lost_trials(const SweepFolder& folder);

/// Returns the names of the sweeps in sweeps/, sorted.
std::vector<std::string> sweep_names();

/// A sweep by its name (sweeps/NAME) or folder, with its board. Throws Error (kUsage) when there is none,
/// with the names that there are.
SweepFolder open_sweep(const std::string& name_or_dir);

}  // namespace tycho
