// Rows from files of tokens that other systems wrote.
#pragma once
#include <cstdint>
#include <memory>

#include "trainer/data/rows/row_reader.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Opens files of tokens. A row is seq_len + 1 tokens of one file, so that every position has a target. The
/// next row begins with the last token of this one, as in Megatron-LM and llm.c, or after it, as in a
/// Nanoset; tokens left at the end of a file are not read. Throws Error (kUnusable) as find_token_files does,
/// and when there is no row.
std::unique_ptr<RowReader> open_token_files(const TokenFilesConfig& config, const RowShape& shape);

/// Returns the number of rows without opening the files that hold tokens.
int64_t count_token_file_rows(const TokenFilesConfig& config, int64_t seq_len);

}  // namespace tycho
