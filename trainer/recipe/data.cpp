// Checks the keys of training data and their combinations.
#include "trainer/recipe/data.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "trainer/base/config_problems.h"
#include "trainer/base/field_types.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

void check_separators(const MdsConfig& data, const std::string& path, int64_t vocab_size,
                      ConfigProblems& problems) {
  if (data.eos_token_id && data.bos_token_id)
    problems.add(path + ".bos_token_id",
                 "cannot be combined with eos_token_id: documents either begin or end with a token; remove "
                 "one of them");
  for (const auto& [key, id] : {std::pair(".eos_token_id", data.eos_token_id),
                                {".bos_token_id", data.bos_token_id},
                                {".pad_token_id", data.pad_token_id}})
    if (id.value_or(0) >= vocab_size)
      problems.add(path + key, "{} is outside the model's vocabulary of {}", *id, vocab_size);
}

/// Checks the keys of the order of samples: a key that would do nothing is an error.
void check_order(const MdsConfig& data, const std::string& path, ConfigProblems& problems) {
  const bool blocks = data.shuffle_algo == ShuffleAlgo::kPy1br || data.shuffle_algo == ShuffleAlgo::kPy1e;
  problems.idle(path + ".shuffle_algo", data.shuffle_algo != ShuffleAlgo::kNaive, data.shuffle,
                "with shuffle = false");
  problems.idle(path + ".shuffle_block_size", data.shuffle_block_size.has_value(), data.shuffle && blocks,
                "unless shuffle_algo is py1br or py1e");
  if (data.shuffle_algo == ShuffleAlgo::kPy1br && data.shuffle_block_size == 1)
    problems.add(path + ".shuffle_block_size", "1 leaves py1br nothing to shuffle; write at least 2");
  problems.idle(path + ".batching_method", data.batching_method != BatchingMethod::kRandom,
                !data.streams.empty(), "without streams");
}

void check_stream_names(const MdsConfig& data, const std::string& path, ConfigProblems& problems) {
  std::set<std::string> names;
  for (size_t i = 0; i < data.streams.size(); ++i) {
    const StreamConfig& stream = data.streams[i];
    const std::string at = fmt::format("{}.streams[{}]", path, i + 1);
    if (stream.name.empty()) problems.add(at + ".name", "is empty: write a name, such as \"code\"");
    if (!names.insert(stream.name).second)
      problems.add(at + ".name", "another stream is called \"{}\" too", stream.name);
    if (stream.local_dir.empty()) problems.add(at + ".local_dir", "is empty: write a folder");
  }
}

/// Checks that each stream has at most one weight, and that all streams use the same kind.
void check_weights(const MdsConfig& data, const std::string& path, ConfigProblems& problems) {
  double sum = 0;
  size_t with_proportion = 0, weighted = 0;
  for (size_t i = 0; i < data.streams.size(); ++i) {
    const StreamConfig& stream = data.streams[i];
    const int weights = stream.proportion.has_value() + stream.repeat.has_value() + stream.choose.has_value();
    if (weights > 1)
      problems.add(fmt::format("{}.streams[{}]", path, i + 1),
                   "has more than one of proportion, repeat and choose; keep one");
    sum += stream.proportion.value_or(0);
    with_proportion += stream.proportion.has_value();
    weighted += weights > 0;
  }
  for (size_t i = 0; i < data.streams.size(); ++i)
    if (with_proportion > 0 && !data.streams[i].proportion)
      problems.add(fmt::format("{}.streams[{}].proportion", path, i + 1),
                   "is missing, but other streams have one: give all streams a proportion, or none");
  if (with_proportion > 0 && !(sum > 0))
    problems.add(path + ".streams[1].proportion",
                 "the proportions of all streams are 0; write at least one above 0");
  if (data.epoch_size && weighted > 0 && with_proportion == 0)
    problems.add(
        path + ".epoch_size",
        "cannot be combined with repeat and choose, which say how long an epoch is; write proportions");
}

void check_streams(const MdsConfig& data, const std::string& path, ConfigProblems& problems) {
  constexpr size_t kMost = 60000;
  if (data.streams.empty()) {
    if (data.local_dir.empty())
      problems.add(path + ".local_dir", "is required: set it to the folder of the data, or write streams");
    return;
  }
  if (!data.local_dir.empty())
    problems.add(path + ".local_dir", "cannot be combined with streams, which have their own");
  if (data.streams.size() > kMost) return problems.add(path + ".streams", "expected at most {}", kMost);
  check_stream_names(data, path, problems);
  check_weights(data, path, problems);
}

void check_remote(const std::string& remote, const std::string& path, ConfigProblems& problems) {
  if (remote.empty()) return;
  if (const std::string problem = remote_problem(remote); !problem.empty())
    problems.add(path + ".remote", "{}", problem);
}

void check_remotes(const MdsConfig& data, const std::string& path, ConfigProblems& problems) {
  check_remote(data.remote, path, problems);
  for (size_t i = 0; i < data.streams.size(); ++i)
    check_remote(data.streams[i].remote, fmt::format("{}.streams[{}]", path, i + 1), problems);
  if (!data.remote.empty() && !data.streams.empty())
    problems.add(path + ".remote", "cannot be combined with streams, which have their own");
  const MdsConfig defaults;
  const bool is_remote = data.is_remote();
  const auto idle = [&](const char* key, bool is_set) {
    problems.idle(path + key, is_set, is_remote, "without remote");
  };
  idle(".cache_limit", data.cache_limit.has_value());
  idle(".keep_zip", data.keep_zip);
  idle(".download_retry", data.download_retry != defaults.download_retry);
  idle(".download_timeout_s", data.download_timeout_s != defaults.download_timeout_s);
  idle(".remote_sas_env", !data.remote_sas_env.empty());
  problems.idle(path + ".decompress_memory", data.decompress_memory != defaults.decompress_memory, !is_remote,
                "with remote: shards are decompressed to files in local_dir");
  problems.idle(path + ".decompress_dir", !data.decompress_dir.empty(), !is_remote,
                "with remote, where local_dir holds what is decompressed");
}

/// True for a name, a colon and hex digits, as in "sha256:9f86...". The data library checks the name and the
/// number of digits.
bool is_checksum(const std::string& text) {
  const size_t colon = text.find(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < text.size() &&
         text.find_first_not_of("0123456789abcdef", colon + 1) == std::string::npos;
}

void check_checksum(const std::string& hash, const std::string& key, ConfigProblems& problems) {
  if (!is_checksum(hash))
    problems.add(key, "is \"{}\": write a name, a colon and hex digits, as in \"sha256:9f86d0...\"", hash);
}

void check_remote_hash(const std::string& hash, const std::string& path, ConfigProblems& problems) {
  if (!hash.empty()) check_checksum(hash, path + ".remote_hash", problems);
}

void check_kind(const ChatConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
                ConfigProblems& problems) {
  if (data.path.empty())
    problems.add(path + ".path", "is empty: write a .jsonl, .csv or .parquet, or a folder of them");
  check_remote(data.remote, path, problems);
  const std::string ending = data.remote_ending();
  if (data.has_remote_file() && !data.path.ends_with(ending))
    problems.add(path + ".path", "\"{}\" is where the file of remote is kept: write a path that ends in {}",
                 data.path, ending);
  problems.idle(path + ".remote_hash", !data.remote_hash.empty(), data.has_remote_file(),
                "unless remote is one file, such as a .jsonl: an MDS data set has checksums of its own");
  check_remote_hash(data.remote_hash, path, problems);
  const bool is_known = data.chat_template == "chatml" || data.chat_template == "llama3";
  if (!is_known && data.chat_template != "tokenizer" && !data.has_template_file())
    problems.add(path + ".template",
                 "is \"{}\": write chatml, llama3, tokenizer, or a path that ends in .jinja",
                 data.chat_template);
  problems.idle(path + ".template_date", !data.template_date.empty(), !is_known,
                "with the templates chatml and llama3");
  if (!data.template_date.empty() && !data.template_day())
    problems.add(path + ".template_date", "is \"{}\": write a day as \"2026-03-09\"", data.template_date);
  problems.idle(path + ".packing_ratio", data.packing_ratio.has_value(), data.pack, "without pack = true");
  problems.idle(path + ".packing_groups", data.packing_groups != 1, data.packing_ratio.has_value(),
                "without packing_ratio");
  problems.idle(path + ".max_leftover_rows", data.max_leftover_rows.has_value(),
                data.packing_ratio.has_value(), "without packing_ratio: nothing is left over");
  if (data.min_target_prompt > 0 && data.target_prompts != TargetPrompts::kAll)
    problems.add(path + ".min_target_prompt", "has no effect unless target_prompts = \"all\"; remove it");
  if (data.eos_token_id.value_or(0) >= vocab_size)
    problems.add(path + ".eos_token_id", "{} is outside the model's vocabulary of {}", *data.eos_token_id,
                 vocab_size);
  if (!has_tokenizer)
    problems.add("tokenizer", "is missing, but {} is text: set tokenizer = \"PATH/tokenizer.json\"", path);
}

/// Checks that the names of remote_files stay below the folder that they are fetched into.
void check_remote_files(const TextConfig& data, const std::string& path, ConfigProblems& problems) {
  const std::string key = path + ".remote_files";
  problems.idle(key, !data.remote_files.empty(), !data.remote.empty(), "without remote");
  if (!data.remote_files.empty() && !data.remote_hash.empty())
    problems.add(path + ".remote_hash",
                 "is of one file, but remote_files names {}: write remote_hashes, with one for each",
                 data.remote_files.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < data.remote_files.size(); ++i) {
    const std::string& name = data.remote_files[i];
    const std::filesystem::path file(name);
    const bool leaves = file.is_absolute() || std::find(file.begin(), file.end(), "..") != file.end();
    if (leaves || !file.has_filename() || name.find('*') != std::string::npos)
      problems.add(fmt::format("{}[{}]", key, i + 1),
                   "is \"{}\": write the path of one file below remote, such as en/0.jsonl", name);
    if (!seen.insert(name).second)
      problems.add(fmt::format("{}[{}]", key, i + 1), "names \"{}\" again: leave it out", name);
  }
}

void check_remote_hashes(const TextConfig& data, const std::string& path, ConfigProblems& problems) {
  const std::string key = path + ".remote_hashes";
  const std::vector<std::string>& hashes = data.remote_hashes;
  problems.idle(key, !hashes.empty(), !data.remote_files.empty(), "without remote_files");
  if (!hashes.empty() && !data.remote_files.empty() && hashes.size() != data.remote_files.size())
    problems.add(key, "has {}, and remote_files names {}: write one for each, in the same order",
                 hashes.size(), data.remote_files.size());
  for (size_t i = 0; i < hashes.size(); ++i)
    check_checksum(hashes[i], fmt::format("{}[{}]", key, i + 1), problems);
}

void check_kind(const TextConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
                ConfigProblems& problems) {
  if (data.path.empty()) problems.add(path + ".path", "is empty: write a file or a folder of text or JSONL");
  check_remote(data.remote, path, problems);
  problems.idle(path + ".remote_hash", !data.remote_hash.empty(), !data.remote.empty(), "without remote");
  check_remote_hash(data.remote_hash, path, problems);
  check_remote_files(data, path, problems);
  check_remote_hashes(data, path, problems);
  for (const auto& [key, id] :
       {std::pair(".bos_token_id", data.bos_token_id), {".eos_token_id", data.eos_token_id}})
    if (id.value_or(0) >= vocab_size)
      problems.add(path + key, "{} is outside the model's vocabulary of {}", *id, vocab_size);
  if (!has_tokenizer)
    problems.add("tokenizer", "is missing, but {} is text: set tokenizer = \"PATH/tokenizer.json\"", path);
}

void check_kind(const TokenFilesConfig& data, const std::string& path, int64_t vocab_size,
                bool /*has_tokenizer*/, ConfigProblems& problems) {
  if (data.path.empty())
    problems.add(path + ".path", "is empty: write a .bin, .ds or .npy file, or a folder of them");
  const bool is_raw = data.format == TokenFormat::kRaw;
  if (is_raw && !data.dtype)
    problems.add(path + ".dtype",
                 "is missing: files of the format raw do not say it; write uint16 (nanoGPT's GPT-2 tokens, "
                 "vocabularies of at most 65536) or uint32");
  problems.idle(path + ".dtype", data.dtype.has_value(), is_raw,
                "unless format = \"raw\": other files say it themselves");
  if (data.token_bytes == 3) problems.add(path + ".token_bytes", "is 3, expected 2 or 4");
  problems.idle(path + ".token_bytes", data.token_bytes.has_value(),
                data.format == TokenFormat::kNanoset || data.format == TokenFormat::kAuto,
                "unless the files are a Nanoset");
  if (data.eos_token_id.value_or(0) >= vocab_size)
    problems.add(path + ".eos_token_id", "{} is outside the model's vocabulary of {}", *data.eos_token_id,
                 vocab_size);
}

void check_kind(const MdsConfig& data, const std::string& path, int64_t vocab_size, bool /*has_tokenizer*/,
                ConfigProblems& problems) {
  check_separators(data, path, vocab_size, problems);
  check_streams(data, path, problems);
  check_remotes(data, path, problems);
  if (data.recut && data.truncate)
    problems.add(path + ".truncate", "cannot be combined with recut, which keeps all tokens; remove one");
  check_order(data, path, problems);
}

}  // namespace

bool MdsConfig::is_remote() const {
  if (!remote.empty()) return true;
  return std::any_of(streams.begin(), streams.end(),
                     [](const auto& stream) { return !stream.remote.empty(); });
}

int64_t MdsConfig::batches_ahead(int64_t global_sequences) const {
  constexpr int64_t kUsual = 64;
  return predownload ? (*predownload + global_sequences - 1) / global_sequences : kUsual;
}

std::vector<MdsConfig> MdsConfig::each_stream() const {
  if (streams.empty()) return {*this};
  std::vector<MdsConfig> all;
  for (const StreamConfig& stream : streams) {
    all.push_back(*this);
    all.back().streams.clear();
    all.back().local_dir = stream.local_dir;
    all.back().remote = stream.remote;
    all.back().split = stream.split;
  }
  return all;
}

std::string DataConfig::place() const {
  return std::visit([](const auto& data) { return data.place(); }, value);
}

std::string DataConfig::weights() const {
  return std::visit(
      [](const auto& data) {
        if constexpr (requires { data.weights; }) return data.weights;
        return std::string();
      },
      value);
}

std::string MdsConfig::place() const {
  if (streams.empty()) return dir();
  std::string names;
  for (const StreamConfig& stream : streams) names += (names.empty() ? "" : ", ") + stream.name;
  return "streams " + names;
}

std::string MdsConfig::rows_text() const {
  std::string text;
  if (eos_token_id) text += fmt::format("; attention ends at token {}", *eos_token_id);
  if (bos_token_id) text += fmt::format("; attention restarts at token {}", *bos_token_id);
  return text;
}

std::string TextConfig::rows_text() const {
  return separate_documents ? "; attention stays within documents" : "";
}

std::string TokenFilesConfig::rows_text() const {
  return eos_token_id ? fmt::format("; attention ends at token {}", *eos_token_id) : "";
}

void check(const DataConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
           ConfigProblems& problems) {
  std::visit([&](const auto& kind) { check_kind(kind, path, vocab_size, has_tokenizer, problems); },
             data.value);
}

void check_same_documents(const MdsConfig& train, const MdsConfig& eval, const std::string& path,
                          ConfigProblems& problems) {
  const auto same = [&](const char* key, std::optional<int64_t> wanted, std::optional<int64_t> given) {
    const auto text = [](std::optional<int64_t> id) { return id ? std::to_string(*id) : "nothing"; };
    if (wanted != given)
      problems.add(path + key,
                   "is {}, but train_data's is {}: their losses would not be comparable; use the same",
                   text(given), text(wanted));
  };
  same(".eos_token_id", train.eos_token_id, eval.eos_token_id);
  same(".bos_token_id", train.bos_token_id, eval.bos_token_id);
  same(".pad_token_id", train.pad_token_id, eval.pad_token_id);
}

}  // namespace tycho
