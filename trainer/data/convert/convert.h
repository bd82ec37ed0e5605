// From text, JSONL, CSV, Parquet and data sets of texts to a data set of tokens: MDS shards of sequences, as
// LLM Foundry's concat format.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/text/input_files.h"

namespace tycho {

/// What the converter has done so far. The total is known before the first report.
struct ConvertProgress {
  int64_t bytes_done = 0, bytes_total = 0;  // of the files
  int64_t tokens = 0;
  int64_t samples = 0;
};

struct ConvertOptions {
  std::vector<std::string> inputs;  // text, JSONL, CSV and Parquet files, folders of them, data sets
  InputRules rules;                 // which files of folders, and what files are
  bool keep_newlines = false;       // leave CR and CR LF in text files; else they become LF
  std::string tokenizer;            // path of a tokenizer.json
  /// Leave out what the tokenizer's own encoding puts around a text (Llama 3: <|begin_of_text|>).
  bool no_added_tokens = false;
  bool no_separator = false;  // join documents without a token between them
  std::string out_dir;        // the data set: <out_dir>/<split>/index.json, <out_dir>/tokenizer.json
  std::string split = "train";
  std::string val_split = "val";
  std::optional<int64_t> max_documents;  // the first ones; none: all
  double val_fraction = 0;          // in [0, 1): share of the documents (every k-th) that goes to val_split
  int64_t concat_tokens = 2048;     // tokens per sample
  std::string bos_text, eos_text;   // text put before and after every document; usually one special token
  bool no_wrap = false;             // drop the rest of a sample's document instead of continuing it
  int64_t size_limit = 64 << 20;    // bytes per shard
  std::vector<std::string> hashes;  // that index.json records of every file: of shard_hash_names()
  std::string compression;          // of shards: parse_compression's names; "": none
  int threads = 0;                  // 0: one per core
  double save_every_s = 10;         // at least between two notes of how far it is, for the one after a kill
  /// Called by the caller's thread, at most ten times a second.
  std::function<void(const ConvertProgress&)> progress;
};

/// Counts of one split that was written.
struct ConvertedSplit {
  std::string dir;
  int64_t documents = 0, bytes = 0;
  int64_t tokens = 0;          // all that the documents gave, bos and eos included
  int64_t dropped_tokens = 0;  // those of the tail (and of no_wrap) that fill no sample
  int64_t longest_bytes = 0;   // of a document
  int64_t skipped_rows = 0;    // that could not be used and would have been next
  int64_t samples = 0, shards = 0;
};

/// Of all splits.
int64_t skipped_rows(const std::vector<ConvertedSplit>& splits);

struct ConvertResult {
  std::vector<ConvertedSplit> splits;  // train, then val when there is one
  std::vector<std::string> warnings;   // for people: an eos of several tokens, leftovers
  std::vector<std::string> notes;      // for people: what was read as what, what was skipped
};

/// Tokenises the documents (a text file is one, and so is a line of JSONL and a row of the others; files in
/// sorted order of their paths within each input) and writes them packed into samples of `concat_tokens`: the
/// bytes of shards and index.json are those that LLM Foundry's converters write for the same text and flags.
/// The result does not depend on `threads`. Lines and rows that cannot be used are an Error, or are skipped
/// if the rules say so: documents are counted without them. Splits are written to a temporary folder beside
/// their place and renamed when complete, so an interrupted call leaves no split that looks whole. Errors:
/// kUsage for options that make no sense, a split that is already there, and documents that nothing would
/// separate; kUnusable for inputs and tokenizers that cannot be read, or text that gives no sample; kStorage
/// for failing writes.
ConvertResult convert_text(const ConvertOptions& options, FileOps& files = real_files());

/// What one split contains, for `tycho data inspect`.
struct DatasetInfo {
  std::string dir;
  int64_t shards = 0, samples = 0, bytes = 0;
  std::vector<std::string> column_names, column_encodings;
  std::vector<std::string> hashes;  // names of the checksums that the index records
  // From tycho.json, which convert_text writes beside index.json; zero or empty for data sets made elsewhere.
  std::string tokenizer_hash, bos_text, eos_text;
  int64_t concat_tokens = 0, documents = 0, tokens = 0, vocab_size = 0;
};

/// Reads index.json (and tycho.json when there is one) of a split's folder, or of every split inside a data
/// set's folder. Throws Error (kUnusable) naming file and field.
std::vector<DatasetInfo> dataset_info(const std::string& path);

}  // namespace tycho
