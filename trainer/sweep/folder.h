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

/// A sweep's folder, ledger and board. Owned by one thread.
class SweepFolder {
 public:
  /// Opens an existing or a new folder. Writes nothing.
  SweepFolder(FileOps& files, const std::string& dir);

  /// Applies what other processes have written since the last call. Throws Error (kUnusable).
  void refresh();
  /// Appends a fact and applies it, with what others have written meanwhile. See Ledger::append for
  /// `durable`.
  void record(const Json& fact, bool durable = true);
  /// Marks lost trials on this board only, for display. Writes nothing.
  void show_lost_trials();
  /// Makes `definition` the current plan. Returns false when it already was.
  bool set_definition(const SweepDefinition& definition);
  /// Rewrites a ledger that is mostly history.
  void compact_if_due();

  const Board& board() const { return board_; }
  /// Returns the absolute path.
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

/// Returns the ends, for record(), of trials that are running by the ledger but whose workers are found to be
/// gone.
std::vector<Json> ends_of_lost_trials(const SweepFolder& folder);

/// Returns the names of the sweeps in sweeps/, sorted.
std::vector<std::string> sweep_names();

/// Opens a sweep by its name (sweeps/NAME) or folder. Throws Error (kUsage) that lists the existing ones when
/// there is none.
SweepFolder open_sweep(const std::string& name_or_dir);

}  // namespace tycho
