// A tokenizer's file on this machine, for names of the Hugging Face hub too.
#pragma once
#include <string>

namespace tycho {

/// Returns `name` as it is, unless it begins with hf://. Otherwise returns the path of that file in the hub's
/// cache, fetched as needed with the files that are read beside it; for a repository or a folder, the path of
/// its tokenizer.json, else tokenizer.model, else vocab.json. Throws Error like open_hub() and hub_file(),
/// and kUnusable if there is none of them.
std::string local_tokenizer(const std::string& name);

/// Returns what to do about a tokenizer that is given as a folder: the file in it to name, or those that it
/// lacks.
std::string folder_as_tokenizer(const std::string& folder);

}  // namespace tycho
