// A sweep as rows: what `tycho sweep table` and reports show. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/sweep/board.h"

namespace tycho {

struct TableOptions {
  std::string sort;                  // a column; "" for what the sweep says
  std::vector<std::string> columns;  // empty: what the sweep says
};

/// The first row names the columns. Columns: trial, id, state, rung, step, tokens, wall, note, the metric,
/// losses of evaluations ("eval.c4.loss"), and recipe keys. Throws Error (kUsage) for a column that there is
/// not, with the ones there are.
std::vector<std::vector<std::string>> sweep_table(const Board& board, const TableOptions& options);

/// Every trial with all that is known of it.
Json sweep_json(const Board& board);
/// Rows as comma-separated values (RFC 4180) and as a Markdown table.
std::string csv_text(const std::vector<std::vector<std::string>>& rows);
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// "12 of 40 done, 3 running, 25 to do, best 3.21 (trial 7)"
std::string sweep_summary(const Board& board);
/// Seconds as people read them: 1.2 s, 3.4 min, 5.6 h.
std::string seconds_text(double seconds);
/// Keys that some trial has a value for, in order.
std::vector<std::string> space_keys(const Board& board);

}  // namespace tycho
