// Compares the head of every shard with index.json, then reads every sample as training would.
#include "trainer/data/prepare/dataset_damage.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <set>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/in_parallel.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/mds/compressed_shard.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_value.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFindings = 20;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_cache(const MdsIndex& index) { return exists(index.dir + "/" + kCacheWorkFolder); }

bool has_file(const MdsShard& file) {
  return exists(file.path) || (file.zip.has_value() && exists(file.zip->path));
}

bool is_there(const MdsIndex& index, const MdsShard& shard) {
  return has_file(shard) && (!shard.lines || has_file(index.offset_files[shard.offsets_file]));
}

/// Reads a shard as never compressed if only its raw file exists, as in a cache.
void prefer_raw_files(MdsIndex& index) {
  for (auto* files : {&index.shards, &index.offset_files})
    for (MdsShard& file : *files)
      if (file.zip && !exists(file.zip->path) && exists(file.path)) file.zip.reset();
}

class DamageFinder {
 public:
  DamageFinder(MdsIndex index, ConversionNote note)
      : index_(std::move(index)), note_(std::move(note)), absent_(index_.shards.size()) {
    prefer_raw_files(index_);
    for (size_t i = 0; is_cache(index_) && i < absent_.size(); ++i)
      absent_[i] = !is_there(index_, index_.shards[i]);
  }

  std::vector<std::string> find(bool quick, int num_threads) {
    check_names();
    bool readable = true;
    for (size_t i = 0; i < absent_.size(); ++i) readable &= absent_[i] || check_head(index_.shards[i]);
    if (note_.samples > 0 && note_.samples != index_.num_samples())
      add("{}: index.json lists {} samples, tycho.json {}", index_.dir, index_.num_samples(), note_.samples);
    if (!quick && readable) check_samples(num_threads);
    return std::move(findings_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (findings_.size() == kMaxFindings) findings_.emplace_back("and more");
    if (findings_.size() < kMaxFindings)
      findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  /// Checks that no shard is listed twice, and that all shards in the folder are listed.
  void check_names() {
    std::set<std::string> listed;
    for (const MdsShard& shard : index_.shards)
      if (!listed.insert(shard.path).second) add("{} is listed twice in index.json", shard.path);
    for (const auto* files : {&index_.shards, &index_.offset_files})
      for (const MdsShard& file : *files) listed.insert({file.path, file.stored_path()});
    std::error_code error;
    std::vector<std::string> unlisted;
    for (fs::directory_iterator it(index_.dir, error), end; !error && it != end; it.increment(error)) {
      const bool is_shard =
          it->path().extension() == ".mds" ||
          (!index_.offset_files.empty() && it->path().filename().string().starts_with("shard."));
      if (is_shard && !listed.contains(index_.dir + "/" + it->path().filename().string()))
        unlisted.push_back(it->path().string());
    }
    std::sort(unlisted.begin(), unlisted.end());
    for (const std::string& path : unlisted) add("{} is not listed in index.json", path);
  }

  /// Checks size, number of samples, offsets and columns. Returns false if the samples cannot be read.
  bool check_head(const MdsShard& shard) {
    if (!shard.lines)
      return shard.zip ? check_compressed(shard) : check_size(shard) && check_head(shard, shard);
    const MdsShard& offsets = index_.offset_files[shard.offsets_file];
    if (shard.zip) return check_compressed(offsets) && check_compressed(shard);
    return check_size(offsets) && check_size(shard) && check_head(shard, offsets);
  }

  bool check_size(const MdsShard& file) {
    std::error_code error;
    const auto bytes = static_cast<int64_t>(fs::file_size(file.path, error));
    if (error) {
      add("{}: {}", file.path, error.message());
      return false;
    }
    if (bytes != file.bytes) add("{} has {} bytes, index.json says {}", file.path, bytes, file.bytes);
    return bytes == file.bytes;
  }

  /// `file`: the file that begins with the offsets, either the shard itself or its file of offsets.
  bool check_head(const MdsShard& shard, const MdsShard& file) {
    const int64_t table_end = 4 + 4 * (shard.samples + 1);
    std::vector<uint32_t> head(static_cast<size_t>(shard.samples) + 2);
    if (table_end > file.bytes) {
      add("{} has {} bytes, too few for the offsets of {} samples", file.path, file.bytes, shard.samples);
      return false;
    }
    read_exactly(file.path, 0, head.data(), static_cast<size_t>(table_end));
    if (head[0] != shard.samples) {
      add("{} claims {} samples, index.json {}", file.path, head[0], shard.samples);
      return false;
    }
    if (shard.lines)
      return check_offsets(shard, file.path, head, 0) && check_columns(shard, file, file.bytes, table_end);
    return check_offsets(shard, file.path, head, table_end) && check_columns(shard, file, head[1], table_end);
  }

  /// Checks the compressed file of a shard as a whole; its contents are checked when its samples are read.
  bool check_compressed(const MdsShard& shard) {
    try {
      check_zip(shard);
      return true;
    } catch (const Error& error) {
      add("{}", error.what());
      return false;
    }
  }

  /// `first`: first byte at which the first sample can begin.
  bool check_offsets(const MdsShard& shard, const std::string& path, const std::vector<uint32_t>& head,
                     int64_t first) {
    if (head[1] < first || head[1] > shard.bytes) {
      add("{}: the first sample cannot begin at byte {}, only between {} and {}", path, head[1], first,
          shard.bytes);
      return false;
    }
    for (size_t i = 2; i < head.size(); ++i) {
      if (head[i] > head[i - 1] && head[i] <= shard.bytes) continue;
      add("{}: offset {} of {} is {}, after {} and in a file of {} bytes", path, i - 1, head.size() - 2,
          head[i], head[i - 1], shard.bytes);
      return false;
    }
    if (head.back() == shard.bytes) return true;
    add("{}: the last sample ends at byte {} of {}", path, head.back(), shard.bytes);
    return false;
  }

  /// Checks the JSON between the offsets and `end`.
  bool check_columns(const MdsShard& shard, const MdsShard& file, int64_t end, int64_t table_end) {
    std::string text(static_cast<size_t>(end - table_end), '\0');
    read_exactly(file.path, table_end, text.data(), text.size());
    std::vector<MdsColumn> columns;
    try {
      columns = described_columns(parse_json(text, file.path), shard.lines && shard.lines->is_json);
      if (shard.lines)
        for (MdsColumn& column : columns) column.encoding = encoding_of_line_value(column);
    } catch (const std::exception& error) {
      add("{}: its header at byte {} is damaged", file.path, table_end);
      return false;
    }
    if (columns == shard.columns) return true;
    std::vector<std::string> names;
    for (const MdsColumn& column : columns) names.push_back(column.name);
    add("{} has different columns than index.json: {}", file.path, fmt::join(names, ", "));
    return false;
  }

  static std::vector<MdsColumn> described_columns(const Json& header, bool is_json) {
    std::vector<MdsColumn> columns;
    if (is_json) {
      for (const auto& [name, encoding] : header.at("columns").items())
        columns.push_back({name, encoding.get<std::string>()});
      return columns;
    }
    const auto names = header.at("column_names").get<std::vector<std::string>>();
    const auto encodings = header.at("column_encodings").get<std::vector<std::string>>();
    for (size_t i = 0; i < std::max(names.size(), encodings.size()); ++i)
      columns.push_back({names.at(i), encodings.at(i)});
    return columns;
  }

  /// Checks shards on several threads, each taking the next shard when it is free. Findings are in the order
  /// of shards.
  void check_samples(int num_threads) {
    std::vector<std::string> found(index_.shards.size());
    std::atomic<size_t> next = 0;
    const auto wanted = static_cast<size_t>(std::max(1, num_threads));
    in_parallel(wanted, wanted, [&](size_t) {
      MdsReader reader(index_, VerifyShards::kOnce, RawShards::kInMemory);
      for (size_t shard; (shard = next++) < found.size();)
        if (!absent_[shard]) found[shard] = damage_of(reader, shard);
    });
    for (const std::string& finding : found)
      if (!finding.empty()) add("{}", finding);
  }

  /// Returns the first damage of a shard; "" if there is none.
  std::string damage_of(MdsReader& reader, size_t shard) const {
    try {
      const MdsShard& here = index_.shards[shard];
      if (here.zip) check_raw_file(here);
      if (here.zip && here.lines) check_raw_file(index_.offset_files[here.offsets_file]);
      for (int64_t sample = index_.first_sample[shard]; sample < index_.first_sample[shard + 1]; ++sample)
        check_values(reader, sample);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  /// Checks the decompressed file where it exists, because a run reads it.
  static void check_raw_file(const MdsShard& shard) {
    const int descriptor = open_regular_file(shard.path);
    if (descriptor < 0) return;
    try {
      check_shard(shard, descriptor);
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    ::close(descriptor);
  }

  void check_values(MdsReader& reader, int64_t sample) const {
    const auto& values = reader.read(sample);
    const auto& columns = index_.shards[0].columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == "tokens" && is_mds_array(columns[i].encoding))
        check_tokens(reader.name_of(sample), columns[i].encoding, values[i]);
      else
        check_mds_value(columns[i].encoding, values[i],
                        fmt::format("[mds] column \"{}\" of {}", columns[i].name, reader.name_of(sample)));
    }
  }

  void check_tokens(const std::string& place, const std::string& encoding, std::string_view value) const {
    const MdsArrayView array = decode_mds_array(encoding, value, "[mds] " + place);
    if (note_.concat_tokens > 0 && array.count != note_.concat_tokens)
      fail(ExitCode::kUnusable, "[mds] {} has {} tokens, tycho.json says {}", place, array.count,
           note_.concat_tokens);
    if (array.dtype != "int32") return;
    uint32_t largest = 0;  // negative ones are larger than any
    for (int64_t i = 0; i < array.count; ++i) {
      uint32_t token = 0;
      std::memcpy(&token, array.elements + i * static_cast<int64_t>(sizeof token), sizeof token);
      largest = std::max(largest, token);
    }
    const int64_t vocab_size = note_.vocab_size > 0 ? note_.vocab_size : int64_t{INT32_MAX} + 1;
    if (largest >= vocab_size)
      fail(ExitCode::kUnusable, "[mds] {} has token {}, outside the vocabulary of {}", place,
           static_cast<int32_t>(largest), vocab_size);
  }

  MdsIndex index_;
  ConversionNote note_;
  std::vector<bool> absent_;  // by shard: not in this cache
  std::vector<std::string> findings_;
};

}  // namespace

int64_t num_absent_shards(const std::string& dir) {
  const MdsIndex index = read_mds_index(dir);
  if (!is_cache(index)) return 0;
  return std::count_if(index.shards.begin(), index.shards.end(),
                       [&](const MdsShard& shard) { return !is_there(index, shard); });
}

std::vector<std::string> find_damage(const std::string& dir, bool quick, int num_threads) {
  return DamageFinder(read_mds_index(dir), read_conversion_note(dir)).find(quick, num_threads);
}

}  // namespace tycho
