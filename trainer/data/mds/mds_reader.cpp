// Finds a sample in its shard and splits it into columns.
#include "trainer/data/mds/mds_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {

namespace {

/// Returns bytes [offset, offset + size) of a shard: a view of its memory, or of `buffer` after reading them
/// from its file.
std::string_view bytes_at(const MdsReader::RawBytes& raw, int64_t offset, size_t size, std::string& buffer,
                          const std::string& path) {
  if (raw.memory) {
    const auto bytes = std::string_view(raw.memory->data(), raw.memory->size());
    const auto begin = static_cast<size_t>(offset);
    if (begin > bytes.size() || size > bytes.size() - begin)
      fail(ExitCode::kUnusable, "[mds] {} ends at byte {}; copy the shard again", path, bytes.size());
    return bytes.substr(begin, size);
  }
  buffer.resize(size);
  read_shard(raw.descriptor, offset, buffer.data(), size, path);
  return buffer;
}

}  // namespace

MdsReader::MdsReader(MdsIndex index, VerifyShards verify, RawShards raw)
    : MdsReader(std::move(index), local_source(verify, raw)) {}

MdsReader::MdsReader(MdsIndex index, const MakeShardSource& make_source)
    : MdsReader(std::make_shared<const MdsIndex>(std::move(index)), make_source) {}

MdsReader::MdsReader(std::shared_ptr<const MdsIndex> index, const MakeShardSource& make_source)
    : index_(std::move(index)),
      files_(index_->offset_files.empty() ? MdsIndex() : with_offset_files(*index_)),
      source_(make_source(index_->offset_files.empty() ? *index_ : files_)),
      descriptors_(index_->shards.size() + index_->offset_files.size(), -1) {}

MdsReader::~MdsReader() {
  for (const int fd : descriptors_)
    if (fd >= 0) ::close(fd);
}

size_t MdsReader::shard_of(int64_t sample) const {
  const auto& first = index_->first_sample;
  return static_cast<size_t>(std::upper_bound(first.begin(), first.end(), sample) - first.begin()) - 1;
}

std::string MdsReader::name_of(int64_t sample) const {
  const size_t shard = shard_of(sample);
  return fmt::format("sample {} of {}", sample - index_->first_sample[shard], index_->shards[shard].path);
}

size_t MdsReader::column(std::string_view name) const {
  if (index_->shards.empty())
    fail(ExitCode::kUnusable,
         "[mds] {}/index.json lists no shards: the data set is empty; convert it again, or leave it out of "
         "the recipe",
         index_->dir);
  std::vector<std::string> there;
  const auto& columns = index_->shards[0].columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
    there.push_back(columns[i].name);
  }
  fail(ExitCode::kUnusable, "[mds] {} has no column \"{}\"; it has: {}", index_->dir, name,
       fmt::join(there, ", "));
}

MdsReader::RawBytes MdsReader::raw_bytes(size_t shard) {
  if (descriptors_[shard] < 0)
    if (const auto memory = source_->in_memory(shard)) return {.memory = memory};
  const int descriptor = open_shard(shard);
  source_->verify(shard, descriptor);
  return {.descriptor = descriptor};
}

int MdsReader::open_shard(size_t shard) {
  int& fd = descriptors_[shard];
  if (fd >= 0) return fd;
  if (num_open_ >= source_->max_open()) {
    for (int& other : descriptors_)
      if (other >= 0) ::close(std::exchange(other, -1));
    num_open_ = 0;
  }
  fd = source_->open(shard);
  ++num_open_;
  return fd;
}

void MdsReader::prefetch(std::span<const uint32_t> samples) {
  std::vector<size_t> shards;
  for (const uint32_t sample : samples) shards.push_back(shard_of(sample));
  source_->prefetch(shards);
}

const std::vector<std::string_view>& MdsReader::read(int64_t sample) {
  TYCHO_CHECK(sample >= 0 && sample < index_->num_samples(),
              "[mds] {} has {} samples, but sample {} was requested", index_->dir, index_->num_samples(),
              sample);
  const size_t shard_index = shard_of(sample);
  const MdsShard& shard = index_->shards[shard_index];
  if (shard.lines) read_offsets(shard_index);
  const RawBytes raw = raw_bytes(shard_index);
  const int64_t local = sample - index_->first_sample[shard_index];
  uint32_t range[2];
  if (shard.lines)
    std::copy_n(offsets_.begin() + local, 2, range);
  else
    std::memcpy(range, bytes_at(raw, 4 + 4 * local, sizeof range, data_, shard.path).data(), sizeof range);
  const int64_t first = shard.lines ? 0 : 4 + 4 * (shard.samples + 1);
  if (range[0] > range[1] || range[1] > shard.bytes || range[0] < first) {
    fail(ExitCode::kUnusable, "[mds] {} is damaged: it should be in bytes {} to {} of {}", name_of(sample),
         range[0], range[1], shard.bytes);
  }
  split_sample(shard, sample, bytes_at(raw, range[0], range[1] - range[0], data_, shard.path));
  return values_;
}

/// Reads the offsets of a shard of text. Called before that shard is opened, because one file at a time may
/// be open.
void MdsReader::read_offsets(size_t shard) {
  if (offsets_of_ == shard) return;
  const size_t file = index_->shards.size() + index_->shards[shard].offsets_file;
  const RawBytes raw = raw_bytes(file);
  offsets_of_ = SIZE_MAX;
  offsets_.resize(static_cast<size_t>(index_->shards[shard].samples) + 1);
  const size_t num_bytes = offsets_.size() * sizeof(uint32_t);
  std::memcpy(offsets_.data(), bytes_at(raw, 4, num_bytes, data_, files_.shards[file].path).data(),
              num_bytes);
  if (offsets_.back() != index_->shards[shard].bytes)
    fail(ExitCode::kUnusable, "[mds] {}: the last sample ends at byte {} of {}; copy the shard again",
         files_.shards[file].path, offsets_.back(), index_->shards[shard].bytes);
  offsets_of_ = shard;
}

void MdsReader::split_sample(const MdsShard& shard, int64_t sample, std::string_view data) {
  const auto damaged = [&] {
    fail(ExitCode::kUnusable, "[mds] {} is damaged: its columns do not add up to its {} bytes",
         name_of(sample), data.size());
  };
  values_.clear();
  if (shard.lines) {
    parts_ = split_line(*shard.lines, shard.columns, data, name_of(sample));
    values_.assign(parts_.begin(), parts_.end());
    return;
  }
  const auto variable = std::count(shard.column_sizes.begin(), shard.column_sizes.end(), std::nullopt);
  size_t length_at = 0, at = 4 * static_cast<size_t>(variable);
  if (at > data.size()) damaged();
  for (const auto& fixed : shard.column_sizes) {
    uint32_t size = 0;
    if (fixed) {
      size = static_cast<uint32_t>(*fixed);
    } else {
      std::memcpy(&size, data.data() + length_at, sizeof size);
      length_at += sizeof size;
    }
    if (size > data.size() - at) damaged();
    values_.emplace_back(data.data() + at, size);
    at += size;
  }
  if (at != data.size()) damaged();
}

}  // namespace tycho
