// The prompts of a file.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Reads every line that is not empty; from a .jsonl the "prompt" of every object. Throws Error (kUnusable)
/// that names the line, and for a file without a prompt.
std::vector<std::string> read_prompts(const std::string& path);

}  // namespace tycho
