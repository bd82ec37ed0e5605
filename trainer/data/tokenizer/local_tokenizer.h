// A tokenizer's file on this machine, for names of the Hugging Face hub too.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/rows/row_reader.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Returns `name` as it is, unless it begins with hf://. Otherwise returns the path of that file in the hub's
/// cache, fetched as needed with the files that are read beside it; for a repository or a folder, the path of
/// its tokenizer.json, else tokenizer.model, else vocab.json. Throws Error like open_hub() and hub_file(),
/// and kUnusable if there is none of them.
std::string local_tokenizer(const std::string& name);

/// Loads the tokenizer of rows that are text. Throws Error (kUnusable) that names `place`, the data, if there
/// is none, and for one with more tokens than the vocabulary.
std::unique_ptr<Tokenizer> tokenizer_of_rows(const RowShape& shape, const std::string& place);

/// Returns what to do about a tokenizer that is given as a folder: the file in it to name, or those that it
/// lacks.
std::string folder_as_tokenizer(const std::string& folder);

}  // namespace tycho
