// Reads index.json, strictly.
#include "trainer/data/mds/mds_index.h"

#include <unistd.h>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/mds/conversion_note.h"

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

}  // namespace tycho
