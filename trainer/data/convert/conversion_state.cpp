// One line of JSON, and behind it the samples that fill no shard yet, as they are.
#include "trainer/data/convert/conversion_state.h"

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

void write_conversion_state(FileOps& files, const std::string& dir, const std::string& key,
                            const ConversionState& state) {
  std::string data;
  Json splits = Json::array();
  for (const SplitState& split : state.splits) {
    splits.push_back(split_json(split));
    data += split.writer.data;
  }
  const Json head = {{"key", key},
                     {"chunks", state.chunks},
                     {"documents", state.documents},
                     {"splits", splits},
                     {"hash", hash_hex(data)}};
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
    ConversionState state{.chunks = head.at("chunks"), .documents = head.at("documents")};
    for (const Json& split : head.at("splits")) state.splits.push_back(split_of(split, data));
    return state;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void remove_conversion_state(FileOps& files, const std::string& dir) {
  if (::access(path_in(dir).c_str(), F_OK) == 0) files.remove_file(path_in(dir));
}

}  // namespace tycho
