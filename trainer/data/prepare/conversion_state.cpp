// The file has one line of JSON, then the raw samples that do not fill a shard yet.
#include "trainer/data/prepare/conversion_state.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

std::string path_in(const std::string& dir) { return dir + "/" + kConversionState; }

Json split_json(const SplitState& split) {
  return {{"documents", split.documents},
          {"bytes", split.bytes},
          {"longest_bytes", split.longest_bytes},
          {"skipped_rows", split.skipped_rows},
          {"part_bytes", split.part_bytes},
          {"rest", split.packer.rest},
          {"tokens", split.packer.num_tokens},
          {"samples", split.packer.num_samples},
          {"shards", split.writer.shards},
          {"shard_hashes", split.writer.shard_hashes},
          {"sample_ends", split.writer.sample_ends},
          {"open_bytes", split.writer.data.size()}};
}

SplitState split_of(const Json& json, std::string_view& data) {
  SplitState split{.documents = json.at("documents"),
                   .bytes = json.at("bytes"),
                   .longest_bytes = json.at("longest_bytes"),
                   .skipped_rows = json.at("skipped_rows"),
                   .part_bytes = json.at("part_bytes")};
  split.packer.rest = json.at("rest").get<std::vector<int32_t>>();
  split.packer.num_tokens = json.at("tokens");
  split.packer.num_samples = json.at("samples");
  split.writer.shards = json.at("shards");
  split.writer.shard_hashes = json.at("shard_hashes").get<std::vector<std::pair<std::string, std::string>>>();
  split.writer.sample_ends = json.at("sample_ends").get<std::vector<uint32_t>>();
  split.writer.num_samples = split.packer.num_samples;
  const size_t size = std::min(json.at("open_bytes").get<size_t>(), data.size());
  split.writer.data = data.substr(0, size);
  data.remove_prefix(size);
  return split;
}

}  // namespace

int64_t ConversionState::num_shards() const {
  int64_t count = 0;
  for (const SplitState& split : splits) count += std::ssize(split.writer.shards);
  return count;
}

void write_conversion_state(FileOps& files, const std::string& dir, const std::string& key,
                            const ConversionState& state) {
  std::string data;
  Json splits = Json::array();
  for (const SplitState& split : state.splits) {
    splits.push_back(split_json(split));
    data += split.writer.data;
  }
  const Json head = {
      {"key", key},       {"file", state.file},    {"chunks", state.chunks}, {"documents", state.documents},
      {"splits", splits}, {"hash", hash_hex(data)}};
  write_file_atomically(files, path_in(dir), head.dump() + "\n" + data);
}

std::optional<ConversionState> read_conversion_state(const std::string& dir, const std::string& key) {
  if (::access(path_in(dir).c_str(), R_OK) != 0) return std::nullopt;
  const std::string text = read_file(path_in(dir));
  const size_t line = text.find('\n');
  if (line == std::string::npos) return std::nullopt;
  std::string_view data = std::string_view(text).substr(line + 1);
  try {
    const Json head = Json::parse(text.substr(0, line));
    if (head.at("key") != key || head.at("hash") != hash_hex(data)) return std::nullopt;
    ConversionState state{
        .file = head.at("file"), .chunks = head.at("chunks"), .documents = head.at("documents")};
    for (const Json& split : head.at("splits")) state.splits.push_back(split_of(split, data));
    return state;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void remove_conversion_state(FileOps& files, const std::string& dir) {
  if (::access(path_in(dir).c_str(), F_OK) == 0) files.remove_file(path_in(dir));
}

std::string conversion_key(const std::string& kind, const SplitRules& rules,
                           const std::vector<InputFile>& inputs) {
  std::string key =
      fmt::format("4|{}|{}|{}|{}|{}|{}|{}", kind, rules.split, rules.val_split, rules.val_fraction,
                  rules.size_limit, rules.compression, fmt::join(rules.hashes, ","));
  for (const InputFile& file : inputs)
    key += fmt::format("|{}|{}", static_cast<int>(file.format), version_of(file));
  return hash_hex(key);
}

std::optional<ConversionState> adopt_conversion(FileOps& files, const SplitRules& rules,
                                                const std::string& key) {
  std::optional<ConversionState> state;
  adopt_left_over(files, rules, [&](const std::string& dir) {
    state = read_conversion_state(dir, key);
    if (state && state->splits.size() != rules.names().size()) state.reset();
    return state.has_value();
  });
  return state;
}

void StateSaver::save_if_due(const std::string& dir, int64_t num_shards,
                             const std::function<ConversionState()>& state) {
  const auto now = std::chrono::steady_clock::now();
  if (num_shards <= shards_saved_ || now - saved_ < std::chrono::duration<double>(every_s_)) return;
  write_conversion_state(files_, dir, key_, state());
  shards_saved_ = num_shards;
  saved_ = now;
}

}  // namespace tycho
