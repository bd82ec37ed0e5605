// A shard is collected in memory and written in one go, because its header holds the offsets of all samples.
#include "trainer/data/mds/mds_writer.h"

#include <algorithm>
#include <functional>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/storage/compress.h"

namespace tycho {
namespace {

void append_u32(std::string& out, uint64_t value) {
  const auto word = static_cast<uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

}  // namespace

MdsWriter::MdsWriter(FileOps& files, std::string dir, MdsWriterOptions options)
    : files_(files), dir_(std::move(dir)), options_(std::move(options)) {
  TYCHO_CHECK(!options_.columns.empty(), "[mds] a data set needs at least one column");
  TYCHO_CHECK(options_.size_limit > 0 && options_.size_limit < int64_t{1} << 32,
              "[mds] the size limit of shards must be from 1 to 2^32-1 bytes, got {}", options_.size_limit);
  for (const std::string& name : options_.hashes) ShardHasher known(name);
  TYCHO_CHECK(std::is_sorted(options_.hashes.begin(), options_.hashes.end(), std::less_equal<>()),
              "[mds] the names of checksums must be sorted and different, got {}",
              fmt::join(options_.hashes, ", "));
  if (!options_.compression.empty())
    compression_ = parse_compression(options_.compression, "[mds] the writer");
  std::sort(options_.columns.begin(), options_.columns.end(),
            [](const MdsColumn& a, const MdsColumn& b) { return a.name < b.name; });
  for (const MdsColumn& column : options_.columns) column_sizes_.push_back(mds_column_size(column));
  config_ = python_json(describe());
}

Json MdsWriter::describe() const {
  Json names = Json::array(), encodings = Json::array(), sizes = Json::array();
  for (const MdsColumn& column : options_.columns) {
    names.push_back(column.name);
    encodings.push_back(column.encoding);
  }
  for (const auto& size : column_sizes_) sizes.push_back(size ? Json(*size) : Json(nullptr));
  return {{"version", 2},
          {"format", "mds"},
          {"compression", compression_ ? Json(compression_->name) : Json(nullptr)},
          {"hashes", options_.hashes},
          {"size_limit", options_.size_limit},
          {"column_names", names},
          {"column_encodings", encodings},
          {"column_sizes", sizes}};
}

void MdsWriter::write(const std::vector<std::string>& values) {
  TYCHO_CHECK(values.size() == column_sizes_.size(), "[mds] a sample needs {} values, got {}",
              column_sizes_.size(), values.size());
  std::string sample;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!column_sizes_[i]) append_u32(sample, values[i].size());
    TYCHO_CHECK(!column_sizes_[i] || *column_sizes_[i] == static_cast<int64_t>(values[i].size()),
                "[mds] column \"{}\" has values of {} bytes, got {}", options_.columns[i].name,
                *column_sizes_[i], values[i].size());
  }
  for (const std::string& value : values) sample += value;
  const auto shard_bytes = [&](size_t samples, size_t bytes) {
    return 8 + config_.size() + 4 * samples + bytes;
  };
  const size_t grown = shard_bytes(state_.sample_ends.size() + 1, state_.data.size() + sample.size());
  if (grown > static_cast<size_t>(options_.size_limit)) {
    flush_shard();
    TYCHO_CHECK(shard_bytes(1, sample.size()) <= UINT32_MAX,
                "[mds] a sample of {} bytes does not fit into a shard", sample.size());
  }
  state_.data += sample;
  state_.sample_ends.push_back(static_cast<uint32_t>(state_.data.size()));
  ++state_.num_samples;
}

void MdsWriter::flush_shard() {
  if (state_.sample_ends.empty()) return;
  std::string head;
  append_u32(head, state_.sample_ends.size());
  const uint64_t first = 4 + 4 * (state_.sample_ends.size() + 1) + config_.size();
  append_u32(head, first);
  for (const uint32_t end : state_.sample_ends) append_u32(head, first + end);
  head += config_;

  const std::string basename = fmt::format("shard.{:05}.mds", state_.shards.size());
  const std::string raw = head + state_.data;
  state_.shard_hashes.emplace_back(basename, hash_hex(raw));
  Json shard = describe();
  shard["zip_data"] = nullptr;
  if (compression_) {
    shard["raw_data"] = file_entry(basename, raw);
    shard["zip_data"] = write_file(fmt::format("{}.{}", basename, compression_extension(compression_->kind)),
                                   compress_bytes(*compression_, raw));
  } else {
    shard["raw_data"] = write_file(basename, raw);
  }
  shard["samples"] = state_.sample_ends.size();
  state_.shards.push_back(shard);
  state_.sample_ends.clear();
  state_.data.clear();
}

Json MdsWriter::file_entry(const std::string& basename, std::string_view bytes) const {
  Json hashes = Json::object();
  for (const std::string& name : options_.hashes) hashes[name] = shard_hash(name, bytes);
  return {{"basename", basename}, {"bytes", bytes.size()}, {"hashes", hashes}};
}

Json MdsWriter::write_file(const std::string& basename, std::string_view bytes) {
  const auto file = files_.create(dir_ + "/" + basename);
  file->write(bytes.data(), bytes.size());
  file->sync();
  file->close();
  return file_entry(basename, bytes);
}

void MdsWriter::finish() {
  flush_shard();
  write_file_atomically(files_, dir_ + "/index.json",
                        python_json({{"version", 2}, {"shards", state_.shards}}));
}

}  // namespace tycho
