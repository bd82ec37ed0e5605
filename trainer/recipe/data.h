// Configuration of training data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/recipe/bad_rows.h"
#include "trainer/recipe/chat_data.h"

namespace tycho {

enum class VerifyShards { kOnce, kAlways };
constexpr EnumNames<VerifyShards, 2> enum_names(VerifyShards) {
  return {{{"once", VerifyShards::kOnce}, {"always", VerifyShards::kAlways}}};
}

enum class ShuffleAlgo { kNaive, kPy1s, kPy2s, kPy1br, kPy1e };
constexpr EnumNames<ShuffleAlgo, 5> enum_names(ShuffleAlgo) {
  return {{{"naive", ShuffleAlgo::kNaive},
           {"py1s", ShuffleAlgo::kPy1s},
           {"py2s", ShuffleAlgo::kPy2s},
           {"py1br", ShuffleAlgo::kPy1br},
           {"py1e", ShuffleAlgo::kPy1e}}};
}

enum class SamplingMethod { kBalanced, kFixed };
constexpr EnumNames<SamplingMethod, 2> enum_names(SamplingMethod) {
  return {{{"balanced", SamplingMethod::kBalanced}, {"fixed", SamplingMethod::kFixed}}};
}

enum class BatchingMethod { kRandom, kStratified, kPerStream, kDevicePerStream };
constexpr EnumNames<BatchingMethod, 4> enum_names(BatchingMethod) {
  return {{{"random", BatchingMethod::kRandom},
           {"stratified", BatchingMethod::kStratified},
           {"per_stream", BatchingMethod::kPerStream},
           {"device_per_stream", BatchingMethod::kDevicePerStream}}};
}

enum class OrderCompat { kNone, kStreaming };
constexpr EnumNames<OrderCompat, 2> enum_names(OrderCompat) {
  return {{{"none", OrderCompat::kNone}, {"streaming", OrderCompat::kStreaming}}};
}

/// One of several data sets that are mixed.
struct StreamConfig {
  std::string name;
  std::string local_dir;
  std::string remote;
  std::string split = "train";
  std::optional<double> proportion;
  std::optional<double> repeat;
  std::optional<int64_t> choose;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "Its name in messages and in cmd.set_mix.", required);
    v("local_dir", local_dir, "Folder of the data set; each split is a folder in it.", required);
    v("remote", remote, "Where the data set is, as train_data.remote; local_dir is then its cache.");
    v("split", split, "Folder inside local_dir that holds index.json; \"\" for local_dir itself.");
    v("proportion", proportion,
      "Its share of an epoch, relative to the proportions of the others; all streams have one, or none has.",
      at_least(0));
    v("repeat", repeat, "How often an epoch contains it; 0.5 for half of it. Default: once.", positive);
    v("choose", choose, "How many of its samples an epoch contains.", positive);
  }
};

/// MDS shards of tokens, as LLM Foundry's and mosaicml-streaming's writers make them.
struct MdsConfig {
  static constexpr const char* kKind = "mds";
  static constexpr const char* kHelp = "MDS shards of token sequences.";
  std::string local_dir;
  std::string remote;
  std::string split = "train";
  bool shuffle = true;
  std::optional<int64_t> shuffle_seed;
  std::optional<int64_t> eos_token_id;
  std::optional<int64_t> bos_token_id;
  std::optional<int64_t> pad_token_id;
  std::string weights;
  std::optional<int64_t> epoch_size;
  std::vector<StreamConfig> streams;
  BatchingMethod batching_method = BatchingMethod::kRandom;
  SamplingMethod sampling_method = SamplingMethod::kBalanced;
  int64_t sampling_granularity = 1;
  ShuffleAlgo shuffle_algo = ShuffleAlgo::kNaive;
  std::optional<int64_t> shuffle_block_size;
  std::optional<int64_t> num_canonical_nodes;
  OrderCompat compat = OrderCompat::kNone;
  bool recut = false;
  bool truncate = false;
  int64_t prefetch = 4;
  VerifyShards verify = VerifyShards::kOnce;
  std::optional<Bytes> cache_limit;
  bool keep_zip = false;
  std::string decompress_dir;
  Bytes decompress_memory = {int64_t{192} << 20};
  std::optional<int64_t> predownload;
  int64_t download_retry = 6;
  double download_timeout_s = 60;
  std::string remote_sas_env;

  /// True if attention stays within the documents that a row of tokens is packed from.
  bool separates_documents() const { return eos_token_id || bos_token_id; }
  /// Folder that holds index.json.
  std::string dir() const { return split.empty() ? local_dir : local_dir + "/" + split; }
  /// True if the data, or any of its streams, comes from a remote.
  bool is_remote() const;
  /// Number of batches whose shards are fetched or decompressed before they are needed.
  int64_t batches_ahead(int64_t global_sequences) const;
  /// Returns a copy of this config for each stream, with the stream's folder and remote; only this config if
  /// there are no streams.
  std::vector<MdsConfig> each_stream() const;
  /// Name of the data in messages.
  std::string place() const;
  /// Text that `tycho plan` adds about the rows; "" for nothing.
  std::string rows_text() const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("local_dir", local_dir,
      "Folder of the data set; each split is a folder in it. Required unless there are streams.");
    v("remote", remote,
      "Where the data set is, if not in local_dir: a folder, or a URL that begins with file://, https://, "
      "http://, s3:// or hf://. local_dir is then the cache of this machine, which its ranks share.");
    v("split", split, "Folder inside local_dir that holds index.json; \"\" for local_dir itself.");
    v("shuffle", shuffle,
      "Visit the samples of an epoch in a random order, fixed by shuffle_seed and the epoch.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("eos_token_id", eos_token_id,
      "Documents end with this token, and attention stays within documents. Default: attention spans the "
      "whole row.",
      at_least(0));
    v("bos_token_id", bos_token_id, "The same for documents that begin with this token.", at_least(0));
    v("pad_token_id", pad_token_id,
      "Do not train on this token: positions that should predict it are not in the loss. Default: train on "
      "all tokens.",
      at_least(0));
    v("weights", weights,
      "Column with the weight of each token in the loss, or with one number for the row; a negative one "
      "marks "
      "the token for a loss that reads z.weight. \"\": all weigh 1.");
    v("epoch_size", epoch_size,
      "Samples per epoch, drawn anew for each from all shards, or more than once where there are too few. "
      "Default: all.",
      positive);
    v("streams", streams, "Several data sets that are mixed, instead of local_dir.");
    v("batching_method", batching_method,
      "How streams share batches: at random; every batch in the same proportions (stratified); every global "
      "batch of one stream (per_stream); every rank's batch of one stream (device_per_stream).");
    v("sampling_method", sampling_method,
      "Whether epochs that do not contain every sample draw them anew (balanced) or are the same (fixed).");
    v("sampling_granularity", sampling_granularity,
      "If an epoch contains only part of a data set: how many samples are drawn from a shard at a time.",
      positive);
    v("shuffle_algo", shuffle_algo,
      "How samples are shuffled: all over the data (naive; 4 bytes per sample in memory), or so that few "
      "shards are read at a time, as mosaicml-streaming does under these names.");
    v("shuffle_block_size", shuffle_block_size,
      "Samples that py1br and py1e shuffle with each other. Default: 4000000 / num_canonical_nodes, at least "
      "262144.",
      positive);
    v("num_canonical_nodes", num_canonical_nodes,
      "Number of parts of the data; every batch takes samples from each in turn. Default: 64 for py1s and "
      "py2s, else 1; with compat = \"streaming\" times the machines.",
      in_range(1, 1 << 20));
    v("compat", compat,
      "streaming: each rank gets the batches that mosaicml-streaming gives it on the same number of ranks "
      "and machines. none: the order of samples within a step does not depend on them.");
    v("recut", recut,
      "Join the samples and cut rows of seq_len tokens, for samples of another length: the same tokens. An "
      "epoch and the order of samples then count rows.");
    v("truncate", truncate,
      "Train on the first seq_len tokens of longer samples, as LLM Foundry does. Default: such samples are "
      "an error.");
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", in_range(1, 1024));
    v("verify", verify,
      "When a shard is compared with its checksum: when the run first reads it and when its file changes, or "
      "also again each time as many samples were read as it has.");
    v("cache_limit", cache_limit,
      "Space for shards of remote data on this machine; the least recently used are removed first. Default: "
      "no limit.",
      positive);
    v("keep_zip", keep_zip,
      "Keep the compressed file of a shard of remote data beside what was decompressed from it.");
    v("decompress_dir", decompress_dir,
      "Folder for what compressed shards are decompressed to, where local_dir cannot be written to. Default: "
      "beside them.");
    v("decompress_memory", decompress_memory,
      "Memory of each rank for decompressed shards. Those that do not fit are decompressed to files, as are "
      "all of train_data where several ranks share a machine. 0: files only.",
      at_least(0));
    v("predownload", predownload,
      "How many samples before their turn the shards of remote data are fetched, and compressed shards "
      "decompressed. Default: those of 64 batches.",
      positive);
    v("download_retry", download_retry,
      "How often a download is tried again after an error, with growing waits.", in_range(0, 1000));
    v("download_timeout_s", download_timeout_s,
      "Seconds without data after which a download is given up and tried again.", in_range(1, 3600));
    v("remote_sas_env", remote_sas_env,
      "Environment variable that holds the query of every URL of the remote, such as an Azure SAS. "
      "Default: AZURE_STORAGE_SAS_TOKEN for https://*.blob.core.windows.net.");
  }
};

enum class TokenFormat { kAuto, kMegatron, kNanoset, kLlmc, kNumpy, kRaw };
constexpr EnumNames<TokenFormat, 6> enum_names(TokenFormat) {
  return {{{"auto", TokenFormat::kAuto},
           {"megatron", TokenFormat::kMegatron},
           {"nanoset", TokenFormat::kNanoset},
           {"llmc", TokenFormat::kLlmc},
           {"numpy", TokenFormat::kNumpy},
           {"raw", TokenFormat::kRaw}}};
}

/// Type of the tokens in a file that does not say it.
enum class TokenDtype { kUint16, kUint32 };
constexpr EnumNames<TokenDtype, 2> enum_names(TokenDtype) {
  return {{{"uint16", TokenDtype::kUint16}, {"uint32", TokenDtype::kUint32}}};
}

/// Files of tokens that other systems wrote, read where they are.
struct TokenFilesConfig {
  static constexpr const char* kKind = "tokens";
  static constexpr const char* kHelp =
      "Token files of Megatron-LM, Nanotron and llm.c, NumPy arrays, and files of bare tokens (nanoGPT, "
      "OLMo).";
  std::string path;
  TokenFormat format = TokenFormat::kAuto;
  std::optional<TokenDtype> dtype;
  std::optional<int64_t> token_bytes;
  std::optional<int64_t> eos_token_id;
  bool shuffle = true;
  std::optional<int64_t> shuffle_seed;
  int64_t prefetch = 4;

  /// Name of the data in messages.
  std::string place() const { return path; }
  /// Text that `tycho plan` adds about the rows.
  std::string rows_text() const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path, "A .bin, .ds or .npy file, or a folder of them, read in the order of their paths.",
      required);
    v("format", format,
      "Format of the files. auto: .bin with an .idx beside it is Megatron-LM's, .bin with llm.c's header is "
      "llm.c's, .ds is a Nanoset, .npy with NumPy's header is an array. raw: nothing but tokens, as in "
      "nanoGPT's train.bin and OLMo's .npy.");
    v("dtype", dtype, "Type of the tokens in files of the format raw.");
    v("token_bytes", token_bytes,
      "Bytes of a token in a Nanoset without .metadata: 2, or 4 for vocabularies above 65536.",
      in_range(2, 4));
    v("eos_token_id", eos_token_id,
      "Documents end with this token, and attention stays within documents. Default: attention spans the "
      "whole row.",
      at_least(0));
    v("shuffle", shuffle,
      "Visit the rows of an epoch in a random order, fixed by shuffle_seed and the epoch.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", in_range(1, 1024));
  }
};

/// Texts that are tokenised when the run starts.
struct TextConfig {
  static constexpr const char* kKind = "text";
  static constexpr const char* kHelp =
      "Text, JSONL, CSV, Parquet, Arrow or a data set of texts, tokenised at the start as TorchTitan does.";
  std::string path;
  std::string remote;
  std::vector<std::string> remote_files;
  std::vector<std::string> remote_hashes;
  std::string remote_hash;
  std::string split = "train";
  std::string field = "text";
  BadRows bad_rows = BadRows::kError;
  std::optional<int64_t> bos_token_id;
  std::optional<int64_t> eos_token_id;
  bool separate_documents = false;
  bool shuffle = false;
  std::optional<int64_t> shuffle_seed;
  int64_t prefetch = 4;

  /// Name of the data in messages.
  std::string place() const { return path; }
  /// Text that `tycho plan` adds about the rows.
  std::string rows_text() const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path,
      "A text, JSONL or CSV file, also .gz or .zst, a Parquet or Arrow file, a folder of these, or a data "
      "set "
      "with a column of texts.",
      required);
    v("remote", remote,
      "Where the file is, if not in path, which is then its copy on this machine: a path or a URL that "
      "begins "
      "with file://, https://, http://, s3:// or hf://, of one file, or of a folder with remote_files.");
    v("remote_files", remote_files,
      "Files in the folder remote, such as { \"en/0.jsonl\", \"en/1.jsonl\" }: they are fetched into the "
      "folder path, and read in this order.");
    v("remote_hashes", remote_hashes,
      "Checksums of remote_files, one for each in the same order, such as { \"sha256:9f86d0...\" }: other "
      "files are refused.");
    v("remote_hash", remote_hash,
      "Checksum of the file at remote, such as \"sha256:9f86d0...\": another file is refused.");
    v("split", split,
      "Of a folder whose file or folder names tell splits apart, as in train.jsonl and test.jsonl: which one "
      "to read. \"\": all files.");
    v("field", field, "Field of a JSONL line, or column of the others, that holds the text.");
    v("bad_rows", bad_rows,
      "What happens to lines and rows that cannot be used, such as invalid JSON or a text that is null: an "
      "error, or skip, which leaves them out and counts them.");
    v("bos_token_id", bos_token_id,
      "Token before every document, unless the tokenizer adds its own. Default: the tokenizer's.",
      at_least(0));
    v("eos_token_id", eos_token_id,
      "Token after every document, unless the tokenizer adds its own. Default: the tokenizer's.",
      at_least(0));
    v("separate_documents", separate_documents, "Attention stays within documents.");
    v("shuffle", shuffle,
      "Visit the rows of an epoch in a random order, fixed by shuffle_seed and the epoch; else in that of "
      "the texts.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", in_range(1, 1024));
  }
};

class ConfigProblems;

struct DataConfig : OneOf<MdsConfig, ChatConfig, TokenFilesConfig, TextConfig> {
  static constexpr const char* kNamespace = "data";
  /// Name of the data in messages.
  std::string place() const;
  /// Name of the column or field with weights of targets; "" for none.
  std::string weights() const;
};

/// Data that a run switches to at `start`.
struct DataStageConfig {
  std::string name;
  Duration start = {1, DurationUnit::kBatch};
  DataConfig data;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "Its name in messages.", required);
    v("start", start, "When it starts: how much of the run comes before.", units("ba tok sp dur"), positive,
      required);
    v("data", data, "What to train on from then on.", required);
  }
};

/// Reports what is wrong with the data at `path` ("train_data") for a model of `vocab_size` tokens.
void check(const DataConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
           ConfigProblems& problems);
/// Reports each key of `eval` (at `path`) that makes evaluation see other documents or targets than training
/// does.
void check_same_documents(const MdsConfig& train, const MdsConfig& eval, const std::string& path,
                          ConfigProblems& problems);

}  // namespace tycho
