// Reads index.json, strictly.
#include "trainer/data/mds/mds_index.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/shard_hash.h"

namespace tycho {
namespace {

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

/// The path of a file that index.json names: never outside of the data set.
std::string file_name(const Fields& file) {
  const std::string basename = file.text("basename");
  if (basename.empty() || basename[0] == '/' || ("/" + basename + "/").find("/../") != std::string::npos ||
      basename.find('\0') != std::string::npos)
    fail(ExitCode::kUnusable, "{}: \"basename\" must be a path inside the data set, got \"{}\"", file.place(),
         basename);
  return basename;
}

/// Of the checksums that are recorded, the one that is compared.
void read_hash(const Fields& file, std::string& name, std::string& hash) {
  const Json& hashes = file.get("hashes");
  if (!hashes.is_object()) fail(ExitCode::kUnusable, "{}: \"hashes\" must be an object", file.place());
  for (const std::string& known : shard_hash_names()) {
    if (!hashes.contains(known)) continue;
    name = known;
    hash = Fields(hashes, file.place()).text(known.c_str());
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (hash.size() != shard_hash_digits(known) || !std::all_of(hash.begin(), hash.end(), is_digit))
      fail(ExitCode::kUnusable, "{}: \"{}\" must be {} hexadecimal digits, got \"{}\"", file.place(), known,
           shard_hash_digits(known), hash);
    return;
  }
}

/// What index.json itself says is the bound of what a compressed shard may give.
void check_raw_size(const Fields& entry, const MdsShard& shard) {
  const Json& limit = entry.get("size_limit");
  if (shard.samples > 1 && limit.is_number_integer() && limit.get<int64_t>() > 0 &&
      shard.bytes > limit.get<int64_t>())
    fail(ExitCode::kUnusable, "{}: its raw size of {} bytes is above its \"size_limit\" of {}", entry.place(),
         shard.bytes, limit.get<int64_t>());
}

MdsShard read_shard_entry(const std::string& dir, const std::string& raw_dir, const Fields& fields) {
  if (fields.count("version", 0, INT32_MAX) != 2)
    fail(ExitCode::kUnusable, "{}: \"version\" must be 2", fields.place());
  if (fields.text("format") != "mds")
    fail(ExitCode::kUnusable, "{}: format \"{}\" is not supported, only mds is", fields.place(),
         fields.text("format"));
  MdsShard shard;
  read_columns(fields, shard);
  shard.samples = fields.count("samples", 1, UINT32_MAX / 4);
  const Fields raw(fields.get("raw_data"), fields.place() + ": \"raw_data\"");
  shard.bytes = raw.count("bytes", 8, UINT32_MAX);
  shard.path = dir + "/" + file_name(raw);
  read_hash(raw, shard.hash_name, shard.hash);
  const bool compressed = !fields.get("compression").is_null();
  if (compressed != !fields.get("zip_data").is_null())
    fail(ExitCode::kUnusable,
         "{}: a compressed shard has both \"compression\" and \"zip_data\", any other neither",
         fields.place());
  if (!compressed) return shard;
  check_raw_size(fields, shard);
  const Fields zip(fields.get("zip_data"), fields.place() + ": \"zip_data\"");
  shard.zip.emplace();
  shard.zip->kind = parse_compression(fields.text("compression"), fields.place()).kind;
  shard.zip->path = dir + "/" + file_name(zip);
  shard.zip->bytes = zip.count("bytes", 1, UINT32_MAX);
  read_hash(zip, shard.zip->hash_name, shard.zip->hash);
  if (shard.zip->path == shard.path)
    fail(ExitCode::kUnusable, "{}: \"raw_data\" and \"zip_data\" must be different files", fields.place());
  shard.path = raw_dir + "/" + file_name(raw);
  return shard;
}

/// A folder of its own for each data set.
std::string raw_dir_of(const std::string& dir, const std::string& decompress_dir) {
  if (decompress_dir.empty()) return dir;
  std::error_code error;
  const std::string whole = std::filesystem::absolute(dir, error).lexically_normal().string();
  return fmt::format("{}/{}", decompress_dir, hash_hex(whole).substr(0, 16));
}

}  // namespace

int64_t MdsIndex::num_bytes() const {
  int64_t bytes = 0;
  for (const MdsShard& shard : shards) bytes += shard.bytes;
  return bytes;
}

std::vector<uint32_t> shard_sizes(const MdsIndex& index) {
  std::vector<uint32_t> sizes;
  for (const MdsShard& shard : index.shards) sizes.push_back(static_cast<uint32_t>(shard.samples));
  return sizes;
}

MdsIndex read_mds_index(const std::string& dir, const std::string& decompress_dir) {
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
  const std::string raw_dir = raw_dir_of(dir, decompress_dir);
  index.first_sample = {0};
  for (size_t i = 0; i < shards.size(); ++i) {
    const Fields entry(shards[i], fmt::format("[mds] {}: shard {}", path, i));
    index.shards.push_back(read_shard_entry(dir, raw_dir, entry));
    index.first_sample.push_back(index.num_samples() + index.shards.back().samples);
    if (i == 0) index.hashes = entry.texts("hashes");
    if (index.shards[i].columns != index.shards[0].columns)
      fail(ExitCode::kUnusable, "{} has different columns than shard 0", entry.place());
  }
  // An index of LLM Foundry's own form has no checksums; the note of a conversion has them.
  const ConversionNote note = read_conversion_note(dir);
  for (MdsShard& shard : index.shards) {
    if (!shard.hash.empty()) continue;
    const std::string& folder = shard.zip ? raw_dir : dir;
    if (const auto found = note.shards.find(shard.path.substr(folder.size() + 1)); found != note.shards.end())
      shard.hash_name = "xxh3_128", shard.hash = found->second;
  }
  return index;
}

}  // namespace tycho
