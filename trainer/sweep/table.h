// A sweep as rows: what `tycho sweep table` and reports show. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/sweep/board.h"

namespace tycho {

struct TableOptions {
  std::string sort;                  // a column; "" for the sweep's choice
  std::vector<std::string> columns;  // empty: the sweep's choice
};

/// Returns the rows, header first. Columns: trial, id, state, rung, step, tokens, wall, note, the metric,
/// losses of evaluations ("eval.c4.loss"), and recipe keys. Throws Error (kUsage) for an unknown column, with
/// the known ones.
std::vector<std::vector<std::string>> sweep_table(const Board& board, const TableOptions& options);

/// Returns every trial with all its facts.
Json sweep_json(const Board& board);
/// Return rows as comma-separated values (RFC 4180) and as a Markdown table.
std::string csv_text(const std::vector<std::vector<std::string>>& rows);
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Returns "12 of 40 done, 3 running, 25 to do, best 3.21 (trial 7)".
std::string sweep_summary(const Board& board);
/// Returns seconds for display: 1.2 s, 3.4 min, 5.6 h.
std::string seconds_text(double seconds);
/// Returns the keys that some trial has a value for, in order.
std::vector<std::string> space_keys(const Board& board);

}  // namespace tycho
