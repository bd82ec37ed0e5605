// Converts text, JSONL, CSV, Parquet and data sets of texts to a data set of tokens: MDS shards of sequences,
// in LLM Foundry's concat format.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/sources/input_files.h"

namespace tycho {

/// Progress of the converter. The total is known before the first report.
struct ConvertProgress {
  int64_t bytes_done = 0, bytes_total = 0;  // bytes of the input files
  int64_t tokens = 0;
  int64_t samples = 0;
};

struct ConvertOptions {
  std::vector<std::string> inputs;  // text, JSONL, CSV and Parquet files, folders of them, data sets
  InputRules rules;                 // choice of files in folders, and their formats
  bool keep_newlines = false;       // leave CR and CR LF in text files; else they become LF
  std::string tokenizer;            // path of a tokenizer.json
  /// Leave out the tokens that the tokenizer's own encoding puts around a text (Llama 3: <|begin_of_text|>).
  bool no_added_tokens = false;
  bool no_separator = false;  // join documents without a token between them
  std::string out_dir;        // the data set: <out_dir>/<split>/index.json, <out_dir>/tokenizer.json
  std::string split = "train";
  std::string val_split = "val";
  std::optional<int64_t> max_documents;  // convert only the first documents; nothing: all
  std::optional<int64_t> max_samples;    // write only the first samples; nothing: all
  bool keeps_fetched = false;            // keep files of the hub in its cache; else they pass through out_dir
  double val_fraction = 0;          // in [0, 1): share of the documents (every k-th) that goes to val_split
  int64_t concat_tokens = 2048;     // tokens per sample
  std::string bos_text, eos_text;   // text put before and after every document; usually one special token
  bool no_wrap = false;             // drop the rest of a sample's document instead of continuing it
  int64_t size_limit = 64 << 20;    // bytes per shard
  std::vector<std::string> hashes;  // checksums of every file in index.json: names of shard_hash_names()
  std::string compression;          // compression of shards: a name of parse_compression; "": none
  int threads = 0;                  // 0: one per core
  double save_every_s = 10;  // least time between two saved states, from which the next call continues after
                             // a kill
  /// Called by the caller's thread, at most ten times a second.
  std::function<void(const ConvertProgress&)> progress;
};

/// Counts of a split that was written.
struct ConvertedSplit {
  std::string dir;
  int64_t documents = 0, bytes = 0;
  int64_t tokens = 0;          // all tokens of the documents, bos and eos included
  int64_t dropped_tokens = 0;  // tokens at the end (and with no_wrap in between) that fill no sample
  int64_t longest_bytes = 0;   // bytes of the longest document
  int64_t skipped_rows = 0;    // unusable rows, not counting those after the last document that was wanted
  int64_t samples = 0, shards = 0;
};

/// Returns the number of skipped rows of all splits.
int64_t skipped_rows(const std::vector<ConvertedSplit>& splits);

struct ConvertResult {
  std::vector<ConvertedSplit> splits;  // train, then val when there is one
  std::vector<std::string> warnings;   // for users: an eos of several tokens, leftovers
  std::vector<std::string> notes;      // for users: the format of each input, skipped files
};

/// Tokenises the documents and writes them, packed into samples of `concat_tokens`. A text file is one
/// document, and so is a line of JSONL and a row of the others; files are read in sorted order of their paths
/// within each input. The bytes of shards and index.json equal those that LLM Foundry's converters write for
/// the same text and flags, and do not depend on `threads`. Lines and rows that cannot be used are an Error,
/// or are skipped if the rules say so; documents are counted without them. Splits are written to a temporary
/// folder next to the final one and renamed when complete, so that an interrupted call leaves no split that
/// looks whole. Throws Error: kUsage for options that make no sense, a split that already exists, and
/// documents without a separator; kUnusable for inputs and tokenizers that cannot be read, or text that gives
/// no sample; kStorage for failing writes.
ConvertResult convert_text(const ConvertOptions& options, FileOps& files = real_files());

/// Contents of one split, for `tycho data inspect`.
struct DatasetInfo {
  std::string dir;
  int64_t shards = 0, samples = 0, bytes = 0;
  std::vector<std::string> column_names, column_encodings;
  std::vector<std::string> hashes;  // names of the checksums that the index records
  // Read from tycho.json, which convert_text writes next to index.json; zero or empty for data sets made
  // elsewhere.
  std::string tokenizer_hash, bos_text, eos_text;
  int64_t concat_tokens = 0, documents = 0, tokens = 0, vocab_size = 0;
};

/// Reads index.json (and tycho.json if there is one) of a split's folder, or of every split in a data set's
/// folder. Throws Error (kUnusable) naming file and field.
std::vector<DatasetInfo> dataset_info(const std::string& path);

}  // namespace tycho
