// Writes COMMIT and reads it back without trusting it.
#include "trainer/checkpoint/manifest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/checkpoint/safetensors.h"

namespace tycho {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr char kHashOpening[] = "{\"hash\":\"";
constexpr size_t kHashDigits = 32;

Json tensor_json(const TensorRecord& tensor) {
  Json pieces = Json::array();
  for (const TensorPiece& piece : tensor.pieces) {
    pieces.push_back(Json::array({piece.file, piece.offset, piece.num_bytes, piece.extent}));
  }
  return {
      {"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"pieces", std::move(pieces)}};
}

Json file_json(const FileRecord& file) {
  return {
      {"name", file.name}, {"num_bytes", file.num_bytes}, {"xxh3_128", file.hash}, {"blocks", file.blocks}};
}

/// Typed access to parsed JSON. Throws Error with the place and the field when a value is not as expected.
class Fields {
 public:
  Fields(const Json& json, const std::string& place) : json_(json), place_(place) {
    if (!json.is_object()) bad("an object");
  }
  const Json& get(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) bad(key);
    return *found;
  }
  std::string text(const char* key) const {
    const Json& value = get(key);
    if (!value.is_string()) bad(key);
    return value.get<std::string>();
  }
  int64_t count(const char* key) const { return count_of(get(key), key); }
  const Json& array(const char* key) const {
    const Json& value = get(key);
    if (!value.is_array()) bad(key);
    return value;
  }
  /// Returns an object of strings; null in older checkpoints, which lack it.
  Json texts_or_null(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return {};
    if (!found->is_object()) bad(key);
    for (const Json& value : *found)
      if (!value.is_string()) bad(key);
    return *found;
  }
  std::string hex(const char* key, size_t digits) const {
    const std::string value = text(key);
    check_hex(value, digits, key);
    return value;
  }
  void check_hex(const std::string& value, size_t digits, const char* key) const {
    if (value.size() != digits || value.find_first_not_of("0123456789abcdef") != std::string::npos) bad(key);
  }
  int64_t count_of(const Json& value, const char* key) const {
    const auto limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= limit
                                                 : value.is_number_integer() && value.get<int64_t>() >= 0;
    if (!fits) bad(key);
    return value.get<int64_t>();
  }
  [[noreturn]] void bad(const char* field) const {
    fail(ExitCode::kUnusable, "[checkpoint] {}: the field '{}' is missing or wrong", place_, field);
  }

 private:
  const Json& json_;
  const std::string& place_;
};

FileRecord parse_file(const Json& json, const std::string& place) {
  const Fields fields(json, place);
  FileRecord file{.name = fields.text("name"),
                  .num_bytes = fields.count("num_bytes"),
                  .hash = fields.hex("xxh3_128", kHashDigits)};
  if (!is_plain_file_name(file.name)) fields.bad("name");
  for (const Json& block : fields.array("blocks")) {
    if (!block.is_string()) fields.bad("blocks");
    file.blocks.push_back(block.get<std::string>());
    fields.check_hex(file.blocks.back(), kHashDigits, "blocks");
  }
  const int64_t whole = file.num_bytes / kHashBlockBytes, rest = file.num_bytes % kHashBlockBytes;
  if (static_cast<int64_t>(file.blocks.size()) != whole + (rest != 0)) fields.bad("blocks");
  return file;
}

TensorPiece parse_piece(const Json& json, const TensorRecord& tensor, const Fields& fields,
                        const std::string& place) {
  if (!json.is_array() || json.size() != 4 || !json[0].is_string() || !json[3].is_array())
    fields.bad("pieces");
  TensorPiece piece{.file = json[0].get<std::string>(),
                    .offset = fields.count_of(json[1], "pieces"),
                    .num_bytes = fields.count_of(json[2], "pieces")};
  if (json[3].size() != tensor.shape.size()) fields.bad("pieces");
  std::vector<int64_t> shape;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    const Json& range = json[3][dim];
    if (!range.is_array() || range.size() != 2) fields.bad("pieces");
    const int64_t begin = fields.count_of(range[0], "pieces"), end = fields.count_of(range[1], "pieces");
    if (begin > end || end > tensor.shape[dim]) fields.bad("pieces");
    piece.extent.emplace_back(begin, end);
    shape.push_back(end - begin);
  }
  if (piece.num_bytes != safetensors_num_bytes(tensor.dtype, shape, place)) fields.bad("pieces");
  return piece;
}

std::string piece_text(const TensorPiece& piece) { return box_text(piece.box()) + " in " + piece.file; }

[[noreturn]] void fail_pieces(const TensorRecord& tensor, const std::string& place) {
  constexpr size_t kMostCompared = 2000;  // in pairs
  const size_t n = std::min(tensor.pieces.size(), kMostCompared);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j)
      if (volume(common_box(tensor.pieces[i].box(), tensor.pieces[j].box())) > 0)
        fail(ExitCode::kUnusable, "[checkpoint] {}: the field 'pieces' is wrong: {} and {} overlap", place,
             piece_text(tensor.pieces[i]), piece_text(tensor.pieces[j]));
  int64_t held = 0;
  for (const TensorPiece& piece : tensor.pieces) held += piece.num_bytes;
  fail(ExitCode::kUnusable,
       "[checkpoint] {}: the field 'pieces' is wrong: {} pieces hold {} of the {} bytes of [{}] {}", place,
       tensor.pieces.size(), held, safetensors_num_bytes(tensor.dtype, tensor.shape, place),
       fmt::join(tensor.shape, ", "), tensor.dtype);
}

TensorRecord parse_tensor(const Json& json, const std::unordered_map<std::string, int64_t>& file_bytes,
                          const std::string& checkpoint) {
  TensorRecord tensor{.name = Fields(json, checkpoint).text("name")};
  const std::string place = fmt::format("{}: tensor '{}'", checkpoint, tensor.name);
  const Fields fields(json, place);
  tensor.dtype = fields.text("dtype");
  for (const Json& dim : fields.array("shape")) tensor.shape.push_back(fields.count_of(dim, "shape"));
  safetensors_num_bytes(tensor.dtype, tensor.shape, place);  // refuses what is out of range
  std::vector<Box> boxes;
  for (const Json& item : fields.array("pieces")) {
    tensor.pieces.push_back(parse_piece(item, tensor, fields, place));
    const TensorPiece& piece = tensor.pieces.back();
    const auto file = file_bytes.find(piece.file);
    if (file == file_bytes.end() || piece.num_bytes > file->second ||
        piece.offset > file->second - piece.num_bytes) {
      fields.bad("pieces");
    }
    boxes.push_back(piece.box());
  }
  if (!boxes_tile(tensor.shape, boxes)) fail_pieces(tensor, place);
  return tensor;
}

/// Verifies the hash and returns the JSON after it.
Json verified_body(std::string_view text, const std::string& place) {
  const size_t opening = sizeof kHashOpening - 1, rest = opening + kHashDigits;
  if (text.size() < rest + 2 || text.substr(0, opening) != kHashOpening) {
    fail(ExitCode::kUnusable, "[checkpoint] {} is not a Tycho COMMIT ({} bytes)", place, text.size());
  }
  const std::string_view wanted = text.substr(opening, kHashDigits);
  const std::string found = hash_hex(text.substr(rest));
  if (found != wanted) {
    fail(ExitCode::kUnusable, "[checkpoint] {} is damaged: XXH3-128 {} is recorded, {} was read", place,
         wanted, found);
  }
  return parse_json(text, place);
}

}  // namespace

Box TensorPiece::box() const {
  Box box;
  for (const auto& [begin, end] : extent) box.offsets.push_back(begin), box.shape.push_back(end - begin);
  return box;
}

std::string piece_name(const std::string& tensor, const std::vector<int64_t>& shape, const Box& piece) {
  return piece == whole_box(shape) ? tensor : tensor + box_text(piece);
}

bool is_plain_file_name(const std::string& name) {
  const std::string_view forbidden("/\0", 2);
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name != "COMMIT" &&
         name.find_first_of(forbidden) == std::string::npos;
}

Json world_of_one() {
  return {{"ranks", 1}, {"mesh", {{"pp", 1}, {"dp_replicate", 1}, {"dp_shard", 1}, {"cp", 1}, {"tp", 1}}}};
}

Json manifest_json(const Manifest& manifest) {
  Json tensors = Json::array(), files = Json::array();
  for (const TensorRecord& tensor : manifest.tensors) tensors.push_back(tensor_json(tensor));
  for (const FileRecord& file : manifest.files) files.push_back(file_json(file));
  Json json = {{"format", "tycho-checkpoint"},
               {"version", kFormatVersion},
               {"uuid", manifest.uuid},
               {"parent", manifest.parent},
               {"epoch", manifest.epoch},
               {"step", manifest.step},
               {"save_number", manifest.save_number},
               {"world", manifest.world},
               {"block_bytes", kHashBlockBytes},
               {"tensors", std::move(tensors)},
               {"files", std::move(files)},
               {"train_state", manifest.train_state},
               {"recipe", manifest.recipe},
               {"recipe_hash", manifest.recipe_hash}};
  if (!manifest.tag.empty()) json["tag"] = manifest.tag;
  if (!manifest.route.is_null()) json["route"] = manifest.route;
  return json;
}

std::string manifest_text(const Manifest& manifest) { return commit_text(manifest_json(manifest)); }

std::string commit_text(const Json& manifest) {
  const std::string body = canonical_json(manifest);
  const std::string rest = "\"," + body.substr(1) + "\n";
  return kHashOpening + hash_hex(rest) + rest;
}

Manifest parse_manifest(std::string_view text, const std::string& place) {
  return manifest_from_json(verified_body(text, place), place);
}

Manifest manifest_from_json(const Json& json, const std::string& place) {
  const Fields fields(json, place);
  if (fields.text("format") != "tycho-checkpoint") fields.bad("format");
  if (fields.count("version") != kFormatVersion) {
    fail(ExitCode::kUnusable, "[checkpoint] {} has format version {}, this Tycho reads {}: use a newer Tycho",
         place, fields.count("version"), kFormatVersion);
  }
  if (fields.count("block_bytes") != kHashBlockBytes) fields.bad("block_bytes");
  Manifest manifest{.uuid = fields.hex("uuid", 32),
                    .parent = fields.text("parent"),
                    .epoch = fields.count("epoch"),
                    .step = fields.count("step"),
                    .save_number = json.contains("save_number") ? fields.count("save_number") : 0,
                    .world = fields.get("world"),
                    .train_state = fields.get("train_state"),
                    .recipe = fields.get("recipe"),
                    .recipe_hash = fields.text("recipe_hash"),
                    .tag = json.contains("tag") ? fields.text("tag") : "",
                    .route = fields.texts_or_null("route")};
  std::unordered_map<std::string, int64_t> file_bytes;
  for (const Json& item : fields.array("files")) {
    manifest.files.push_back(parse_file(item, place));
    const FileRecord& file = manifest.files.back();
    if (!file_bytes.emplace(file.name, file.num_bytes).second) fields.bad("files");
  }
  std::unordered_set<std::string> names;
  for (const Json& item : fields.array("tensors")) {
    manifest.tensors.push_back(parse_tensor(item, file_bytes, place));
    if (!names.insert(manifest.tensors.back().name).second) fields.bad("tensors");
  }
  return manifest;
}

}  // namespace tycho
