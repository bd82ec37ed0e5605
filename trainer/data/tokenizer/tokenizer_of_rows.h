// The tokenizer of data that is text.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/rows/row_reader.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Loads the tokenizer of rows that are text. Throws Error (kUnusable) that names `place`, the data, if there
/// is none, and for one with more tokens than the vocabulary.
std::unique_ptr<Tokenizer> tokenizer_of_rows(const RowShape& shape, const std::string& place);

}  // namespace tycho
