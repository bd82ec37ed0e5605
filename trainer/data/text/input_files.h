// Detects what input files are: text or JSONL, compressed or not, or something that must be converted first.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tycho {

enum class TextFormat { kText, kJsonl };

struct InputFile {
  std::string path;
  TextFormat format = TextFormat::kText;
  int64_t bytes = 0;
};

struct InputRules {
  /// Endings of the files to read in folders, .gz, .zst and .zstd left out. None: whatever is known as text
  /// or JSONL by name and content.
  std::vector<std::string> extensions;
  std::optional<TextFormat> format;  // of every file, instead of looking
  std::string field = "text";        // of JSONL
};

struct InputFiles {
  std::vector<InputFile> files;
  std::vector<std::string> skipped;  // files in folders that are neither text nor JSONL by their names
};

/// Files as they are named, folders searched and sorted by path, hidden files left out. A named file of an
/// unknown ending is text. Throws Error: kUnusable for an input that is not there, a folder with nothing to
/// read, and data of a kind that cannot be read (Parquet, CSV, archives), saying what to do; kUsage for a
/// text file that looks like JSONL.
InputFiles find_input_files(const std::vector<std::string>& inputs, const InputRules& rules);

}  // namespace tycho
