// Summarizes a split from its index and its note, without opening a shard.
#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/prepare/convert.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

DatasetInfo split_info(const std::string& dir) {
  const MdsIndex index = read_mds_index(dir);
  const ConversionNote note = read_conversion_note(dir);
  DatasetInfo info;
  info.dir = dir;
  info.shards = static_cast<int64_t>(index.shards.size());
  info.samples = index.num_samples();
  info.bytes = index.num_bytes();
  info.hashes = index.hashes;
  if (!index.shards.empty()) {
    for (const MdsColumn& column : index.shards[0].columns) {
      info.column_names.push_back(column.name);
      info.column_encodings.push_back(column.encoding);
    }
  }
  info.tokenizer_hash = note.tokenizer_hash;
  info.bos_text = note.bos_text;
  info.eos_text = note.eos_text;
  info.concat_tokens = note.concat_tokens;
  info.documents = note.documents;
  info.tokens = note.tokens;
  info.vocab_size = note.vocab_size;
  return info;
}

}  // namespace

std::vector<DatasetInfo> dataset_info(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + "/index.json", error) || !fs::is_directory(path, error)) return {split_info(path)};
  std::vector<std::string> splits;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const bool hidden = it->path().filename().string().starts_with('.');
    if (!hidden && fs::exists(it->path() / "index.json", error)) splits.push_back(it->path().string());
  }
  if (splits.empty()) return {split_info(path)};  // throws: there is no index.json
  std::sort(splits.begin(), splits.end());
  std::vector<DatasetInfo> infos;
  for (const std::string& split : splits) infos.push_back(split_info(split));
  return infos;
}

}  // namespace tycho
