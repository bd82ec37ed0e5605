// Detects the format of input files: text, JSONL, CSV (all compressed or not), Parquet, Arrow, a data set of
// texts, or something that must be converted first.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/recipe/bad_rows.h"

namespace tycho {

/// kTsv: CSV with tabs. kDataSet: folder of a mosaicml-streaming data set with a column of texts.
enum class TextFormat { kText, kJsonl, kCsv, kTsv, kParquet, kArrow, kDataSet };

class FileLender;

struct InputFile {
  std::string path;  // or name on the hub, with its commit
  TextFormat format = TextFormat::kText;
  int64_t bytes = 0;
  std::shared_ptr<FileLender> lender = {};  // brings the file to this machine; none: it is there
  std::string hash = {};                    // of a file with a lender
};

struct InputRules {
  /// Endings of the files to read in folders, without .gz, .zst and .zstd. If empty: CSV, Parquet, Arrow, and
  /// every file that is text or JSONL by name and content.
  std::vector<std::string> extensions;
  std::optional<TextFormat> format;  // format of every file; nothing: detect it
  std::string field = "text";        // field of JSONL; column of the others
  BadRows bad_rows = BadRows::kError;
  /// Read only rows of finetuning data: JSONL, CSV, Parquet, Arrow and data sets. A named file of another
  /// ending is JSONL.
  bool rows_only = false;
  /// Split to read in folders whose names tell splits apart (folder_splits); "", or with extensions: all
  /// files. A folder without splits counts as "train", or as any split if takes_unsplit is set. A folder
  /// without this split is an Error, or is read whole if takes_any is set.
  std::string split = "train";
  bool takes_unsplit = false;
  bool takes_any = false;
  /// Configuration to read of folders and repositories whose README.md declares some; "": their default.
  std::string configuration = {};
  /// Folder for files of the hub while they are read; "": they go to the cache and stay there.
  std::string passing_folder = {};
  int downloads = 0;  // files of the hub that are fetched at a time; 0: 8
};

struct InputFiles {
  std::vector<InputFile> files;
  std::vector<std::string> skipped;  // files in folders whose names belong to no format that is read
  std::vector<std::string> notes;    // for users: files of folders that were left out
};

/// Finds input files. Names that begin with hf:// are those of find_hub_files(). Named files keep their
/// order; folders are searched and sorted by path, without hidden files; a named folder with the index.json
/// of a data set is one input. A pattern such as "texts/*.jsonl" stands for the paths that it matches,
/// sorted. A named file of an unknown ending is text. Throws Error: kUnusable for a missing input, a folder
/// with nothing to read or without the split, and data of a kind that cannot be read (archives, PDF), saying
/// what to do; kUsage for a text file that looks like JSONL.
InputFiles find_input_files(const std::vector<std::string>& inputs, const InputRules& rules);

/// Returns a text that changes when the file does.
std::string version_of(const std::string& path);
/// Returns a text that changes when the input does; for a data set, when its index.json does.
std::string version_of(const InputFile& file);

}  // namespace tycho
