// Detects what input files are: text, JSONL, CSV (all compressed or not), Parquet, a data set of texts, or
// something that must be converted first.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/bad_rows.h"

namespace tycho {

/// kTsv: CSV with tabs. kDataSet: a folder of mosaicml-streaming's, with a column of texts.
enum class TextFormat { kText, kJsonl, kCsv, kTsv, kParquet, kDataSet };

struct InputFile {
  std::string path;
  TextFormat format = TextFormat::kText;
  int64_t bytes = 0;
};

struct InputRules {
  /// Endings of the files to read in folders, .gz, .zst and .zstd left out. None: whatever is known as text
  /// or JSONL by name and content, CSV and Parquet.
  std::vector<std::string> extensions;
  std::optional<TextFormat> format;  // of every file, instead of looking
  std::string field = "text";        // of JSONL; the column of CSV and Parquet
  BadRows bad_rows = BadRows::kError;
  /// Rows of finetuning data are wanted: JSONL, CSV, Parquet and data sets. A named file of another ending is
  /// JSONL.
  bool rows_only = false;
  /// Of folders whose names tell splits apart (folder_splits); "", or with extensions: all files. A folder
  /// without splits is "train", or whatever is asked for where takes_unsplit says so; one without this split
  /// is an Error, or is read whole where takes_any says so.
  std::string split = "train";
  bool takes_unsplit = false;
  bool takes_any = false;
};

struct InputFiles {
  std::vector<InputFile> files;
  std::vector<std::string> skipped;  // files in folders whose names are of no kind that is read
  std::vector<std::string> notes;    // for people: what was left out of folders
};

/// Files as they are named, folders searched and sorted by path, hidden files left out; a named folder with
/// the index.json of a data set is one input. A pattern such as "texts/*.jsonl" stands for what it matches,
/// sorted by path. A named file of an unknown ending is text. Throws Error:
/// kUnusable for an input that is not there, a folder with nothing to read or without the split, and data of
/// a kind that cannot be read (Arrow, archives), saying what to do; kUsage for a text file that looks like
/// JSONL.
InputFiles find_input_files(const std::vector<std::string>& inputs, const InputRules& rules);

/// Changes when the file does.
std::string version_of(const std::string& path);
/// The same for an input; of a data set, for its index.json.
std::string version_of(const InputFile& file);

}  // namespace tycho
