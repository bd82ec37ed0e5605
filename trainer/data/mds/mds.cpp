// Shards are read with pread, never mapped: a file that is cut short meanwhile is an Error, not a SIGBUS.
#include "trainer/data/mds/mds.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/data/mds/conversion_note.h"

namespace tycho {
namespace {

constexpr int kMaxOpen = 256;
constexpr size_t kHashPiece = 4 << 20;

/// Fields of one object of index.json.
class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) fail(ExitCode::kUnusable, "{} must be an object", place_);
  }
  const Json& get(const char* key) const {
    const auto it = object_.find(key);
    if (it == object_.end()) fail(ExitCode::kUnusable, "{} has no \"{}\"", place_, key);
    return *it;
  }
  int64_t count(const char* key, int64_t low, int64_t high) const {
    const Json& value = get(key);
    if (!value.is_number_integer() || value.get<int64_t>() < low || value.get<int64_t>() > high)
      fail(ExitCode::kUnusable, "{}: \"{}\" must be a whole number from {} to {}", place_, key, low, high);
    return value.get<int64_t>();
  }
  std::string text(const char* key) const {
    const Json& value = get(key);
    if (!value.is_string()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a string", place_, key);
    return value.get<std::string>();
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> list;
    const Json& value = get(key);
    if (!value.is_array()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a list", place_, key);
    for (const Json& item : value) {
      if (!item.is_string()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a list of strings", place_, key);
      list.push_back(item.get<std::string>());
    }
    return list;
  }
  const std::string& place() const { return place_; }

 private:
  const Json& object_;
  std::string place_;
};

void read_columns(const Fields& fields, MdsShard& shard) {
  const auto names = fields.texts("column_names"), encodings = fields.texts("column_encodings");
  if (names.empty() || names.size() != encodings.size())
    fail(ExitCode::kUnusable, "{}: \"column_names\" and \"column_encodings\" must have the same length",
         fields.place());
  for (size_t i = 0; i < names.size(); ++i) {
    shard.columns.push_back({names[i], encodings[i]});
    shard.column_sizes.push_back(mds_column_size(shard.columns.back()));
  }
}

MdsShard read_shard_entry(const std::string& dir, const Fields& fields) {
  if (fields.count("version", 0, INT32_MAX) != 2)
    fail(ExitCode::kUnusable, "{}: \"version\" must be 2", fields.place());
  if (fields.text("format") != "mds")
    fail(ExitCode::kUnusable, "{}: format \"{}\" is not supported, only mds is", fields.place(),
         fields.text("format"));
  if (!fields.get("compression").is_null() || fields.get("raw_data").is_null()) {
    fail(ExitCode::kUnusable,
         "{}: the shard is compressed, which this version cannot read yet; write the data set without "
         "compression",
         fields.place());
  }
  MdsShard shard;
  read_columns(fields, shard);
  shard.samples = fields.count("samples", 1, UINT32_MAX / 4);
  const Fields raw(fields.get("raw_data"), fields.place() + ": \"raw_data\"");
  shard.bytes = raw.count("bytes", 8, UINT32_MAX);
  const std::string basename = raw.text("basename");
  if (basename.empty() || basename[0] == '/' || ("/" + basename + "/").find("/../") != std::string::npos)
    fail(ExitCode::kUnusable, "{}: \"basename\" must be a path inside the data set, got \"{}\"", raw.place(),
         basename);
  shard.path = dir + "/" + basename;
  const Json& hashes = raw.get("hashes");
  for (const char* name : {"xxh3_128", "xxh128"})
    if (hashes.is_object() && hashes.contains(name)) shard.xxh3_128 = Fields(hashes, raw.place()).text(name);
  return shard;
}

void pread_exactly(int fd, int64_t offset, void* data, size_t num_bytes, const std::string& place) {
  auto* bytes = static_cast<char*>(data);
  while (num_bytes > 0) {
    const ssize_t n = ::pread(fd, bytes, num_bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ExitCode::kUnusable, "[mds] cannot read {}: {}", place, std::strerror(errno));
    if (n == 0)
      fail(ExitCode::kUnusable, "[mds] {}: the file ends at byte {}; copy the shard again", place, offset);
    bytes += n, offset += n, num_bytes -= static_cast<size_t>(n);
  }
}

}  // namespace

int64_t MdsIndex::num_bytes() const {
  int64_t bytes = 0;
  for (const MdsShard& shard : shards) bytes += shard.bytes;
  return bytes;
}

MdsIndex read_mds_index(const std::string& dir) {
  const std::string path = dir + "/index.json";
  if (::access(path.c_str(), F_OK) != 0) {
    fail(ExitCode::kUnusable,
         "[mds] {} does not exist; create the data set with `tycho data convert`, or check local_dir and "
         "split",
         path);
  }
  const Json root = parse_json(read_file(path), path);
  const Fields fields(root, "[mds] " + path);
  if (fields.count("version", 0, INT32_MAX) != 2)
    fail(ExitCode::kUnusable, "[mds] {}: \"version\" must be 2", path);
  const Json& shards = fields.get("shards");
  if (!shards.is_array()) fail(ExitCode::kUnusable, "[mds] {}: \"shards\" must be a list", path);
  MdsIndex index;
  index.dir = dir;
  index.first_sample = {0};
  for (size_t i = 0; i < shards.size(); ++i) {
    const Fields entry(shards[i], fmt::format("[mds] {}: shard {}", path, i));
    index.shards.push_back(read_shard_entry(dir, entry));
    index.first_sample.push_back(index.num_samples() + index.shards.back().samples);
    if (i == 0) index.hashes = entry.texts("hashes");
    if (index.shards[i].columns != index.shards[0].columns)
      fail(ExitCode::kUnusable, "{} has different columns than shard 0", entry.place());
  }
  // An index of LLM Foundry's own form has no checksums; the note of a conversion has them.
  const ConversionNote note = read_conversion_note(dir);
  for (MdsShard& shard : index.shards)
    if (const auto found = note.shards.find(shard.path.substr(dir.size() + 1));
        found != note.shards.end() && shard.xxh3_128.empty())
      shard.xxh3_128 = found->second;
  return index;
}

MdsReader::MdsReader(MdsIndex index)
    : index_(std::move(index)), descriptors_(index_.shards.size(), -1), verified_(index_.shards.size()) {
  for (const MdsShard& shard : index_.shards) {
    struct stat info;
    if (::stat(shard.path.c_str(), &info) != 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", shard.path, std::strerror(errno));
    if (info.st_size != shard.bytes) {
      fail(ExitCode::kUnusable, "[mds] {} has {} bytes, index.json says {}; copy the shard again", shard.path,
           static_cast<int64_t>(info.st_size), shard.bytes);
    }
    uint32_t samples = 0;
    read_exactly(shard.path, 0, &samples, sizeof samples);
    if (samples != shard.samples) {
      fail(ExitCode::kUnusable, "[mds] {} claims {} samples, index.json {}; copy the shard again", shard.path,
           samples, shard.samples);
    }
  }
}

MdsReader::~MdsReader() {
  for (const int fd : descriptors_)
    if (fd >= 0) ::close(fd);
}

size_t MdsReader::shard_of(int64_t sample) const {
  const auto& first = index_.first_sample;
  return static_cast<size_t>(std::upper_bound(first.begin(), first.end(), sample) - first.begin()) - 1;
}

std::string MdsReader::name_of(int64_t sample) const {
  const size_t shard = shard_of(sample);
  return fmt::format("sample {} of {}", sample - index_.first_sample[shard], index_.shards[shard].path);
}

size_t MdsReader::column(std::string_view name) const {
  std::vector<std::string> there;
  if (!index_.shards.empty()) {
    const auto& columns = index_.shards[0].columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == name) return i;
      there.push_back(columns[i].name);
    }
  }
  fail(ExitCode::kUnusable, "[mds] {} has no column \"{}\"; it has: {}", index_.dir, name,
       fmt::join(there, ", "));
}

int MdsReader::open_shard(size_t shard) {
  int& fd = descriptors_[shard];
  if (fd >= 0) return fd;
  if (num_open_ >= kMaxOpen) {
    for (int& other : descriptors_)
      if (other >= 0) ::close(std::exchange(other, -1));
    num_open_ = 0;
  }
  const std::string& path = index_.shards[shard].path;
  fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
  ++num_open_;
  if (!verified_[shard]) verify_shard(shard, fd);
  verified_[shard] = true;
  return fd;
}

void MdsReader::verify_shard(size_t index, int fd) {
  const MdsShard& shard = index_.shards[index];
  if (shard.xxh3_128.empty()) return;
  Hasher hasher;
  std::string piece(std::min(kHashPiece, static_cast<size_t>(shard.bytes)), '\0');
  for (int64_t at = 0; at < shard.bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(piece.size(), static_cast<size_t>(shard.bytes - at)));
    pread_exactly(fd, at, piece.data(), piece.size(), shard.path);
    hasher.update(piece.data(), piece.size());
  }
  if (hasher.hex() != shard.xxh3_128) {
    fail(ExitCode::kUnusable,
         "[mds] {} is damaged: its checksum is {}, index.json says {}; copy the shard again or convert the "
         "data again",
         shard.path, hasher.hex(), shard.xxh3_128);
  }
}

const std::vector<std::string_view>& MdsReader::read(int64_t sample) {
  TYCHO_CHECK(sample >= 0 && sample < index_.num_samples(),
              "[mds] {} has {} samples, but sample {} was requested", index_.dir, index_.num_samples(),
              sample);
  const size_t shard_index = shard_of(sample);
  const MdsShard& shard = index_.shards[shard_index];
  const int fd = open_shard(shard_index);
  const int64_t local = sample - index_.first_sample[shard_index];
  uint32_t range[2];
  pread_exactly(fd, 4 + 4 * local, range, sizeof range, shard.path);
  if (range[0] > range[1] || range[1] > shard.bytes || range[0] < 4 + 4 * (shard.samples + 1)) {
    fail(ExitCode::kUnusable, "[mds] {} is damaged: it should be in bytes {} to {} of {}", name_of(sample),
         range[0], range[1], shard.bytes);
  }
  data_.resize(range[1] - range[0]);
  pread_exactly(fd, range[0], data_.data(), data_.size(), shard.path);
  split_sample(shard, sample);
  return values_;
}

void MdsReader::split_sample(const MdsShard& shard, int64_t sample) {
  const auto damaged = [&] {
    fail(ExitCode::kUnusable, "[mds] {} is damaged: its columns do not add up to its {} bytes",
         name_of(sample), data_.size());
  };
  values_.clear();
  const auto variable = std::count(shard.column_sizes.begin(), shard.column_sizes.end(), std::nullopt);
  size_t length_at = 0, at = 4 * static_cast<size_t>(variable);
  if (at > data_.size()) damaged();
  for (const auto& fixed : shard.column_sizes) {
    uint32_t size = 0;
    if (fixed) {
      size = static_cast<uint32_t>(*fixed);
    } else {
      std::memcpy(&size, data_.data() + length_at, sizeof size);
      length_at += sizeof size;
    }
    if (size > data_.size() - at) damaged();
    values_.emplace_back(data_.data() + at, size);
    at += size;
  }
  if (at != data_.size()) damaged();
}

}  // namespace tycho
