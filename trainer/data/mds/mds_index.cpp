// Reads index.json, strictly.
#include "trainer/data/mds/mds_index.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/base/json_items.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/shard_hash.h"

namespace tycho {
namespace {

/// Reads the fields of one object of index.json.
class Fields {
 public:
  /// Reads the fields of the file, or of a shard.
  Fields(const Json& object, const std::string& path, std::optional<size_t> shard = std::nullopt)
      : Fields(object, path, shard, nullptr) {}
  /// Reads the fields of an object in another one.
  Fields(const Fields& outer, const char* key) : Fields(outer.get(key), outer.path_, outer.shard_, key) {}

  const Json& get(const char* key) const {
    const auto it = object_.find(key);
    if (it == object_.end()) fail(ExitCode::kUnusable, "{} has no \"{}\"", place(), key);
    return *it;
  }
  int64_t count(const char* key, int64_t low, int64_t high) const {
    const Json& value = get(key);
    if (!value.is_number_integer() || value.get<int64_t>() < low || value.get<int64_t>() > high)
      fail(ExitCode::kUnusable, "{}: \"{}\" must be a whole number from {} to {}", place(), key, low, high);
    return value.get<int64_t>();
  }
  std::string text(const char* key) const {
    const Json& value = get(key);
    if (!value.is_string()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a string", place(), key);
    return value.get<std::string>();
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> list;
    const Json& value = get(key);
    if (!value.is_array()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a list", place(), key);
    for (const Json& item : value) {
      if (!item.is_string()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a list of strings", place(), key);
      list.push_back(item.get<std::string>());
    }
    return list;
  }
  /// Returns where the object is, for messages: no text is made for each of many shards.
  std::string place() const {
    std::string text = "[mds] " + path_;
    if (shard_) text += fmt::format(": shard {}", *shard_);
    return key_ == nullptr ? text : fmt::format("{}: \"{}\"", text, key_);
  }

 private:
  Fields(const Json& object, const std::string& path, std::optional<size_t> shard, const char* key)
      : object_(object), path_(path), shard_(shard), key_(key) {
    if (!object.is_object()) fail(ExitCode::kUnusable, "{} must be an object", place());
  }

  const Json& object_;
  const std::string& path_;
  std::optional<size_t> shard_;
  const char* key_;
};

void read_columns(const Fields& fields, MdsShard& shard) {
  const auto names = fields.texts("column_names"), encodings = fields.texts("column_encodings");
  if (names.empty() || names.size() != encodings.size())
    fail(ExitCode::kUnusable, "{}: \"column_names\" and \"column_encodings\" must have the same length",
         fields.place());
  for (size_t i = 0; i < names.size(); ++i) shard.columns.push_back({names[i], encodings[i]});
}

/// Reads the columns of a shard of JSON lines: {"NAME": "ENCODING"}.
void read_json_columns(const Fields& fields, MdsShard& shard) {
  const Fields encodings(fields, "columns");
  for (const auto& [name, encoding] : fields.get("columns").items())
    shard.columns.push_back({name, encodings.text(name.c_str())});
  if (shard.columns.empty()) fail(ExitCode::kUnusable, "{}: \"columns\" is empty", fields.place());
}

/// Reads the line format of a shard of text.
LineFormat read_line_format(const std::string& format, const Fields& fields) {
  LineFormat lines{.is_json = format == "json", .separator = "", .newline = fields.text("newline")};
  if (format == "csv") lines.separator = ",";
  if (format == "tsv") lines.separator = "\t";
  if (format == "xsv") lines.separator = fields.text("separator");
  if (lines.newline.empty() || (lines.separator.empty() && !lines.is_json))
    fail(ExitCode::kUnusable, "{}: \"newline\" and \"separator\" must not be empty", fields.place());
  return lines;
}

/// Returns the path of a file that index.json names. It is never outside of the data set.
std::string file_name(const Fields& file) {
  const std::string basename = file.text("basename");
  if (basename.empty() || basename[0] == '/' || ("/" + basename + "/").find("/../") != std::string::npos ||
      basename.find('\0') != std::string::npos)
    fail(ExitCode::kUnusable, "{}: \"basename\" must be a path inside the data set, got \"{}\"", file.place(),
         basename);
  return basename;
}

/// Chooses the recorded checksum that shards are compared with: the first of shard_hash_names().
void read_hash(const Fields& file, std::string& name, std::string& hash) {
  const Json& hashes = file.get("hashes");
  if (!hashes.is_object()) fail(ExitCode::kUnusable, "{}: \"hashes\" must be an object", file.place());
  for (const std::string& known : shard_hash_names()) {
    const auto found = hashes.find(known);
    if (found == hashes.end()) continue;
    name = known;
    if (!found->is_string()) fail(ExitCode::kUnusable, "{}: \"{}\" must be a string", file.place(), known);
    hash = found->get<std::string>();
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (hash.size() != shard_hash_digits(known) || !std::all_of(hash.begin(), hash.end(), is_digit))
      fail(ExitCode::kUnusable, "{}: \"{}\" must be {} hexadecimal digits, got \"{}\"", file.place(), known,
           shard_hash_digits(known), hash);
    return;
  }
}

/// Checks that a compressed shard is not larger than its "size_limit", which index.json gives. For a shard of
/// text, the first line, with the names of its columns, does not count towards that limit.
void check_raw_size(const Fields& entry, const MdsShard& shard) {
  const Json& limit = entry.get("size_limit");
  if (shard.samples < 2 || !limit.is_number_integer() || limit.get<int64_t>() <= 0) return;
  size_t first_line = 0;
  if (shard.lines)
    for (const MdsColumn& column : shard.columns)
      first_line += column.name.size() + shard.lines->separator.size() + shard.lines->newline.size();
  if (shard.bytes - static_cast<int64_t>(first_line) > limit.get<int64_t>())
    fail(ExitCode::kUnusable, "{}: its raw size of {} bytes is above its \"size_limit\" of {}", entry.place(),
         shard.bytes, limit.get<int64_t>());
}

/// Folder of a data set's files, and folder that they are decompressed to.
struct Folders {
  const std::string &dir, &raw_dir;
};

/// Reads the entry of one file: `raw_key`, and `zip_key` when it is compressed.
void read_file_entry(const Folders& folders, const Fields& fields, const char* raw_key, const char* zip_key,
                     int64_t least_bytes, MdsShard& file) {
  const Fields raw(fields, raw_key);
  file.bytes = raw.count("bytes", least_bytes, UINT32_MAX);
  file.path = folders.dir + "/" + file_name(raw);
  read_hash(raw, file.hash_name, file.hash);
  const bool compressed = !fields.get("compression").is_null();
  if (compressed != !fields.get(zip_key).is_null())
    fail(ExitCode::kUnusable, "{}: a compressed shard has both \"compression\" and \"{}\", any other neither",
         fields.place(), zip_key);
  if (!compressed) return;
  const Fields zip(fields, zip_key);
  file.zip.emplace();
  file.zip->kind = parse_compression(fields.text("compression"), fields.place()).kind;
  file.zip->path = folders.dir + "/" + file_name(zip);
  file.zip->bytes = zip.count("bytes", 1, UINT32_MAX);
  read_hash(zip, file.zip->hash_name, file.zip->hash);
  if (file.zip->path == file.path)
    fail(ExitCode::kUnusable, "{}: \"{}\" and \"{}\" must be different files", fields.place(), raw_key,
         zip_key);
  file.path = folders.raw_dir + "/" + file_name(raw);
}

/// Reads the entry of the file that holds the offsets of a shard's samples, and after them a description of
/// the shard.
MdsShard read_offset_file(const Folders& folders, const Fields& fields, const MdsShard& shard) {
  constexpr int64_t kMostDescription = 1 << 20;
  MdsShard file{.samples = shard.samples};
  const int64_t offsets = 4 * (shard.samples + 2);
  read_file_entry(folders, fields, "raw_meta", "zip_meta", offsets, file);
  if (file.bytes > offsets + kMostDescription || file.path == shard.path)
    fail(ExitCode::kUnusable, "{}: \"raw_meta\" cannot be {} with {} bytes", fields.place(), file.path,
         file.bytes);
  return file;
}

/// Reads the entry of a shard. Adds the file of offsets of a shard of text to `offset_files`.
MdsShard read_shard_entry(const Folders& folders, const Fields& fields, std::vector<MdsShard>& offset_files) {
  if (fields.count("version", 0, INT32_MAX) != 2)
    fail(ExitCode::kUnusable, "{}: \"version\" must be 2", fields.place());
  const std::string format = fields.text("format");
  const bool is_mds = format == "mds";
  if (!is_mds && format != "json" && format != "xsv" && format != "csv" && format != "tsv")
    fail(ExitCode::kUnusable, "{}: format \"{}\" is not supported; mds, json, xsv, csv and tsv are",
         fields.place(), format);
  MdsShard shard;
  format == "json" ? read_json_columns(fields, shard) : read_columns(fields, shard);
  if (!is_mds) {
    shard.lines = read_line_format(format, fields);
    for (MdsColumn& column : shard.columns) column.encoding = encoding_of_line_value(column);
  }
  for (const MdsColumn& column : shard.columns) shard.column_sizes.push_back(mds_column_size(column));
  shard.samples = fields.count("samples", 1, UINT32_MAX / 4);
  read_file_entry(folders, fields, "raw_data", "zip_data", is_mds ? 8 : 1, shard);
  if (shard.zip) check_raw_size(fields, shard);
  if (shard.lines) {
    shard.offsets_file = offset_files.size();
    offset_files.push_back(read_offset_file(folders, fields, shard));
  }
  return shard;
}

/// Returns the folder to decompress to. Below decompress_dir, each data set has its own.
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

MdsIndex with_offset_files(const MdsIndex& index) {
  MdsIndex files = index;
  for (const MdsShard& file : index.offset_files) {
    files.shards.push_back(file);
    files.first_sample.push_back(files.num_samples() + file.samples);
  }
  return files;
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
  MdsIndex index;
  index.dir = dir;
  const std::string raw_dir = raw_dir_of(dir, decompress_dir);
  index.first_sample = {0};
  const auto add_shard = [&](const Json& shard) {
    const Fields entry(shard, path, index.shards.size());
    index.shards.push_back(read_shard_entry({dir, raw_dir}, entry, index.offset_files));
    index.first_sample.push_back(index.num_samples() + index.shards.back().samples);
    if (index.shards.size() == 1) index.hashes = entry.texts("hashes");
    if (index.shards.back().columns != index.shards[0].columns)
      fail(ExitCode::kUnusable, "{} has different columns than shard 0", entry.place());
  };
  const Json root = parse_json_items(read_file(path), path, "shards", add_shard);
  const Fields fields(root, path);
  if (fields.count("version", 0, INT32_MAX) != 2)
    fail(ExitCode::kUnusable, "[mds] {}: \"version\" must be 2", path);
  if (!fields.get("shards").is_array())
    fail(ExitCode::kUnusable, "[mds] {}: \"shards\" must be a list", path);
  // LLM Foundry's index has no checksums; the note of a conversion has them.
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
