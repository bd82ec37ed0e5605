// Writes and strictly reads safetensors headers; the reader builds its table straight from the JSON events.
#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <unordered_set>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

constexpr int64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxDims = 64;
constexpr char kMetadataKey[] = "__metadata__";

/// Collects a header from JSON events. A document tree would take ten times the memory and lose duplicate
/// keys.
class HeaderEvents : public nlohmann::json_sax<Json> {
 public:
  HeaderEvents(std::string place, SafetensorsHeader& header) : place_(std::move(place)), header_(header) {}

  bool start_object(size_t) override {
    if (where_ == Where::kStart) return enter(Where::kTop);
    if (where_ == Where::kMetadataValue) return enter(Where::kMetadata);
    if (where_ != Where::kTensorValue) refuse("an object");
    header_.entries.push_back({.name = name_});
    seen_ = 0;
    return enter(Where::kTensor);
  }

  bool key(std::string& key) override {
    if (where_ == Where::kTop) return top_key(key);
    if (where_ == Where::kMetadata) return metadata_key(key);
    field_ = key == "dtype" ? kDtype : key == "shape" ? kShape : key == "data_offsets" ? kOffsets : 0;
    if (field_ == 0) bad("tensor '{}' has an unknown field '{}'", name_, key);
    if (seen_ & field_) bad("tensor '{}' has two fields '{}'", name_, key);
    seen_ |= field_;
    return true;
  }

  bool string(std::string& value) override {
    if (where_ == Where::kMetadata) return header_.metadata[name_] = value, true;
    if (where_ != Where::kTensor || field_ != kDtype) refuse("a string");
    if (safetensors_dtype_bytes(value) == 0) bad("tensor '{}' has the unknown dtype '{}'", name_, value);
    header_.entries.back().dtype = value;
    return true;
  }

  bool start_array(size_t) override {
    if (where_ != Where::kTensor || field_ == kDtype) refuse("an array");
    numbers_.clear();
    return enter(Where::kNumbers);
  }

  bool number_unsigned(uint64_t value) override {
    if (where_ != Where::kNumbers) refuse("a number");
    if (value > static_cast<uint64_t>(INT64_MAX)) bad("tensor '{}' has a number above 2^63", name_);
    if (numbers_.size() >= kMaxDims) bad("tensor '{}' has more than {} dims", name_, kMaxDims);
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool end_array() override {
    SafetensorsEntry& entry = header_.entries.back();
    if (field_ == kShape) return entry.shape = numbers_, enter(Where::kTensor);
    if (numbers_.size() != 2) bad("tensor '{}' has {} data_offsets, expected 2", name_, numbers_.size());
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
    return enter(Where::kTensor);
  }

  bool end_object() override {
    if (where_ == Where::kTop) return enter(Where::kEnd);
    if (where_ == Where::kTensor && seen_ != (kDtype | kShape | kOffsets)) {
      bad("tensor '{}' lacks dtype, shape or data_offsets", name_);
    }
    return enter(Where::kTop);
  }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(int64_t) override { refuse("a negative number"); }
  bool number_float(double, const std::string&) override { refuse("a fraction or a number above 2^64"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    bad("the header is not JSON at byte {}", position);
  }

 private:
  enum class Where { kStart, kTop, kMetadataValue, kMetadata, kTensorValue, kTensor, kNumbers, kEnd };
  enum Field { kDtype = 1, kShape = 2, kOffsets = 4 };

  bool enter(Where where) {
    where_ = where;
    return true;
  }
  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kUnusable, "[safetensors] {}: {}", place_,
         fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse(const char* what) const {
    bad("{} where the format has none, near '{}'", what, name_);
  }

  bool top_key(const std::string& key) {
    if (key.size() > kMaxNameBytes)
      bad("a name of {} bytes, at most {} are allowed", key.size(), kMaxNameBytes);
    const auto unclean = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (std::any_of(key.begin(), key.end(), unclean)) bad("a name with control characters");
    if (!names_.insert(key).second) bad("the name '{}' appears twice", key);
    if (names_.size() > kMaxTensors + 1) bad("more than {} tensors", kMaxTensors);
    name_ = key;
    return enter(key == kMetadataKey ? Where::kMetadataValue : Where::kTensorValue);
  }
  bool metadata_key(const std::string& key) {
    name_ = key;
    if (header_.metadata.count(key)) bad("the __metadata__ key '{}' appears twice", key);
    header_.metadata[key];
    return true;
  }

  std::string place_;
  SafetensorsHeader& header_;
  Where where_ = Where::kStart;
  std::string name_;
  int field_ = 0, seen_ = 0;
  std::vector<int64_t> numbers_;
  std::unordered_set<std::string> names_;
};

void check_spans(const SafetensorsHeader& header, int64_t num_data_bytes, const std::string& place) {
  int64_t at = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const int64_t wanted = safetensors_num_bytes(entry.dtype, entry.shape, place);
    if (entry.begin != at || entry.end < entry.begin || entry.end - entry.begin != wanted) {
      fail(ExitCode::kUnusable, "[safetensors] {}: tensor '{}' spans [{}, {}), expected [{}, {} more)", place,
           entry.name, entry.begin, entry.end, at, wanted);
    }
    at = entry.end;
  }
  if (at != num_data_bytes) {
    fail(ExitCode::kUnusable, "[safetensors] {}: the tensors need {} bytes of data, the file has {}", place,
         at, num_data_bytes);
  }
}

}  // namespace

int64_t safetensors_dtype_bytes(std::string_view dtype) {
  static const std::map<std::string_view, int64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8},     {"C64", 8}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

int64_t safetensors_num_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                              std::string_view place) {
  int64_t num_bytes = safetensors_dtype_bytes(dtype);
  if (num_bytes == 0) fail(ExitCode::kUnusable, "[safetensors] {}: unknown dtype '{}'", place, dtype);
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(num_bytes, dim, &num_bytes)) {
      fail(ExitCode::kUnusable, "[safetensors] {}: a shape of [{}] {} is out of range", place,
           fmt::join(shape, ", "), dtype);
    }
  }
  return num_bytes;
}

std::string safetensors_prefix(const std::vector<SafetensorsEntry>& entries,
                               const std::map<std::string, std::string>& metadata, int64_t alignment) {
  std::string json = "{";
  if (!metadata.empty()) json += fmt::format("\"{}\":{},", kMetadataKey, Json(metadata).dump());
  int64_t at = 0;
  std::unordered_set<std::string_view> names = {kMetadataKey};
  for (const SafetensorsEntry& entry : entries) {
    TYCHO_CHECK(names.insert(entry.name).second, "[safetensors] two tensors are named '{}'", entry.name);
    TYCHO_CHECK(
        entry.begin == at && entry.end - at == safetensors_num_bytes(entry.dtype, entry.shape, entry.name),
        "[safetensors] tensor '{}' does not follow the one before it", entry.name);
    json += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},",
                        Json(entry.name).dump(), entry.dtype, fmt::join(entry.shape, ","), entry.begin,
                        entry.end);
    at = entry.end;
  }
  if (json.size() > 1) json.pop_back();
  json += "}";
  const size_t rest = (json.size() + 8) % static_cast<size_t>(alignment);
  if (rest != 0) json.append(static_cast<size_t>(alignment) - rest, ' ');
  TYCHO_CHECK(static_cast<int64_t>(json.size()) <= kMaxHeaderBytes,
              "[safetensors] a header of {} bytes is too long", json.size());
  std::string prefix(8, '\0');
  const uint64_t length = json.size();
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<char>(length >> (8 * i));
  return prefix + json;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t num_file_bytes,
                                           const std::string& place) {
  SafetensorsHeader header;
  header.data_start = 8 + static_cast<int64_t>(json.size());
  if (json.empty() || json[0] != '{') {
    fail(ExitCode::kUnusable, "[safetensors] {}: the header does not start with {{", place);
  }
  // The parser takes a zero byte for the end of its input.
  if (const size_t zero = json.find('\0'); zero != std::string_view::npos) {
    fail(ExitCode::kUnusable, "[safetensors] {}: the header is not JSON at byte {}", place, zero);
  }
  HeaderEvents events(place, header);
  Json::sax_parse(json, &events);
  // Bytes decide the order: a header may list its tensors in any. An empty tensor comes before the one at its
  // place.
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_spans(header, num_file_bytes - header.data_start, place);
  return header;
}

SafetensorsHeader read_safetensors_header(const std::string& path) {
  std::error_code error;
  const auto num_file_bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) fail(ExitCode::kUnusable, "[safetensors] cannot read {}: {}", path, error.message());
  return read_safetensors_header(
      path, num_file_bytes, [&](int64_t offset, char* to, size_t n) { read_exactly(path, offset, to, n); });
}

SafetensorsHeader read_safetensors_header(
    const std::string& path, int64_t num_file_bytes,
    const std::function<void(int64_t offset, char* to, size_t n)>& read) {
  if (num_file_bytes < 8)
    fail(ExitCode::kUnusable, "[safetensors] {} has {} bytes, too few", path, num_file_bytes);
  char prefix[8];
  read(0, prefix, sizeof prefix);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(prefix[i]);
  const int64_t limit = std::min(kMaxHeaderBytes, num_file_bytes - 8);
  if (length > static_cast<uint64_t>(limit)) {
    fail(ExitCode::kUnusable, "[safetensors] {}: a header of {} bytes, at most {} are possible", path, length,
         limit);
  }
  std::string json(length, '\0');
  read(8, json.data(), json.size());
  return parse_safetensors_header(json, num_file_bytes, path);
}

}  // namespace tycho
