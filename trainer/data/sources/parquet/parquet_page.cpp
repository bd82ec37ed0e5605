// Reads PageHeader of parquet.thrift, and the encodings of values.
#include "trainer/data/sources/parquet/parquet_page.h"

#include <snappy.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "trainer/base/error.h"
#include "trainer/data/sources/parquet/thrift.h"
#include "trainer/data/sources/sized_block.h"
#include "trainer/data/storage/lz4_block.h"

namespace tycho {
namespace {

using Type = ThriftReader::Type;

constexpr int64_t kMostPageBytes = int64_t{512} << 20;
constexpr int64_t kMostPageValues = int64_t{64} << 20;
constexpr int64_t kPlain = 0, kPlainDictionary = 2, kRuns = 3, kDelta = 5, kDeltaLength = 6, kDeltaText = 7,
                  kDictionary = 8;

template <class... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> what, Args&&... args) {
  fail(ExitCode::kUnusable, "[parquet] {}", fmt::format(what, std::forward<Args>(args)...));
}

/// Field ids in the header of one kind of page.
struct Fields {
  int encoding = 0, definition_bytes = 0, repetition_bytes = 0, is_compressed = 0;
};

void read_kind_header(ThriftReader& in, const Fields& fields, ParquetPageHeader& header) {
  in.read_struct([&](int id, Type type) {
    if (id == fields.is_compressed && (type == Type::kTrue || type == Type::kFalse))
      return header.is_compressed = type == Type::kTrue, true;
    if (type != Type::kI32) return false;
    if (id == 1) return header.num_values = in.read_int(), true;
    if (id == fields.encoding) return header.encoding = in.read_int(), true;
    if (id == fields.definition_bytes) return header.definition_bytes = in.read_int(), true;
    if (id == fields.repetition_bytes) return header.repetition_bytes = in.read_int(), true;
    return false;
  });
}

uint32_t take_word(std::string_view& bytes) {
  uint32_t word = 0;
  if (bytes.size() < sizeof word) damaged("a page ends too early");
  std::memcpy(&word, bytes.data(), sizeof word);
  bytes.remove_prefix(sizeof word);
  return word;
}

std::string_view take_bytes(std::string_view& bytes, uint64_t count) {
  if (count > bytes.size()) damaged("a page ends too early");
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

template <class T>
T take_number(std::string_view& bytes) {
  T value;
  std::memcpy(&value, take_bytes(bytes, sizeof value).data(), sizeof value);
  return value;
}

/// Takes a value in PLAIN encoding from the front of `bytes`. Booleans, which are single bits, are not
/// supported here.
ParquetValue take_plain(ParquetType type, std::string_view& bytes) {
  ParquetValue value;
  switch (type) {
    case ParquetType::kBytes: value.text = take_bytes(bytes, take_word(bytes)); break;
    case ParquetType::kInt32: value.whole = take_number<int32_t>(bytes); break;
    case ParquetType::kInt64: value.whole = take_number<int64_t>(bytes); break;
    case ParquetType::kFloat: value.number = take_number<float>(bytes); break;
    case ParquetType::kDouble: value.number = take_number<double>(bytes); break;
    default: damaged("values of type {} are not read", static_cast<int>(type));
  }
  return value;
}

std::string decompress_with(CompressionKind kind, std::string_view in, size_t raw_bytes) {
  std::optional<std::string> raw = decompress_sized(kind, in, raw_bytes);
  if (!raw) damaged("a page does not decompress to its {} bytes", raw_bytes);
  return std::move(*raw);
}

std::string decompress_lz4_block(std::string_view in, size_t raw_bytes) {
  std::string raw;
  if (!decode_lz4_block(in, raw_bytes, raw) || raw.size() != raw_bytes)
    damaged("a page is not LZ4 data of {} bytes", raw_bytes);
  return raw;
}

uint32_t take_big_endian(std::string_view& bytes) { return __builtin_bswap32(take_word(bytes)); }

/// Decompresses blocks as Hadoop writes them, each after its raw and stored sizes; or one block alone, which
/// older writers called by the same name.
std::string decompress_hadoop_lz4(std::string_view in, size_t raw_bytes) {
  constexpr size_t kSizes = 2 * sizeof(uint32_t);
  std::string raw;
  std::string_view rest = in;
  while (rest.size() >= kSizes) {
    const size_t block = take_big_endian(rest), stored = take_big_endian(rest), before = raw.size();
    if (stored > rest.size() || block > raw_bytes - before) break;
    if (!decode_lz4_block(take_bytes(rest, stored), block, raw) || raw.size() - before != block) break;
    if (rest.empty() && raw.size() == raw_bytes) return raw;
  }
  return decompress_lz4_block(in, raw_bytes);
}

std::string decompress_block(ParquetCodec codec, std::string_view in, size_t raw_bytes) {
  switch (codec) {
    case ParquetCodec::kNone:
      if (in.size() != raw_bytes) damaged("a page has {} bytes, its header says {}", in.size(), raw_bytes);
      return std::string(in);
    case ParquetCodec::kSnappy: {
      constexpr size_t kMostGrowth = 64;  // largest growth of a copy: three bytes stand for at most 64
      size_t given = 0;
      if (!snappy::GetUncompressedLength(in.data(), in.size(), &given) || given != raw_bytes ||
          given > kMostGrowth * in.size())
        damaged("a page is not snappy data of {} bytes", raw_bytes);
      std::string raw(raw_bytes, '\0');
      if (!snappy::RawUncompress(in.data(), in.size(), raw.data()))
        damaged("a page is not snappy data of {} bytes", raw_bytes);
      return raw;
    }
    case ParquetCodec::kGzip: return decompress_with(CompressionKind::kGzip, in, raw_bytes);
    case ParquetCodec::kBrotli: return decompress_with(CompressionKind::kBrotli, in, raw_bytes);
    case ParquetCodec::kZstd: return decompress_with(CompressionKind::kZstd, in, raw_bytes);
    case ParquetCodec::kLz4: return decompress_hadoop_lz4(in, raw_bytes);
    case ParquetCodec::kLz4Raw: return decompress_lz4_block(in, raw_bytes);
    default: break;
  }
  damaged("compression {} is not read", static_cast<int>(codec));
}

}  // namespace

ParquetPageHeader read_page_header(std::string_view bytes) {
  ThriftReader in(bytes);
  ParquetPageHeader header;
  int64_t kind = -1;
  in.read_struct([&](int id, Type type) {
    if (type == Type::kI32 && id <= 3) {
      (id == 1 ? kind : id == 2 ? header.raw_bytes : header.stored_bytes) = in.read_int();
      return true;
    }
    if (type != Type::kStruct) return false;
    if (id == 5) return read_kind_header(in, {.encoding = 2}, header), true;
    if (id == 7) return read_kind_header(in, {.encoding = 2}, header), true;
    if (id == 8) return read_kind_header(in, {4, 5, 6, 7}, header), true;
    return false;
  });
  header.header_bytes = in.position();
  const int64_t levels = header.definition_bytes + header.repetition_bytes;
  if (kind < 0 || kind > 3 || header.raw_bytes < 0 || header.raw_bytes > kMostPageBytes ||
      header.stored_bytes < 0 || header.stored_bytes > kMostPageBytes || header.num_values < 0 ||
      header.num_values > kMostPageValues || header.definition_bytes < 0 || header.repetition_bytes < 0 ||
      levels > std::min(header.raw_bytes, header.stored_bytes))
    damaged("the header of a page says impossible things");
  header.kind = static_cast<ParquetPageKind>(kind);
  return header;
}

std::string decompress_page(const ParquetPageHeader& header, ParquetCodec codec, std::string_view stored) {
  const auto raw_bytes = static_cast<size_t>(header.raw_bytes);
  if (header.kind != ParquetPageKind::kDataV2) return decompress_block(codec, stored, raw_bytes);
  const auto levels = static_cast<size_t>(header.definition_bytes + header.repetition_bytes);
  std::string body(take_bytes(stored, levels));
  const ParquetCodec used = header.is_compressed ? codec : ParquetCodec::kNone;
  // A page with only nulls has no values, and some writers do not compress these zero bytes.
  if (raw_bytes > levels || !stored.empty()) body += decompress_block(used, stored, raw_bytes - levels);
  return body;
}

std::vector<ParquetValue> read_dictionary(const ParquetPageHeader& header, ParquetType type,
                                          std::string_view body) {
  if (header.encoding != kPlain && header.encoding != kPlainDictionary)
    damaged("a dictionary has encoding {}, which is not known", header.encoding);
  std::vector<ParquetValue> values;
  for (int64_t i = 0; i < header.num_values; ++i) values.push_back(take_plain(type, body));
  return values;
}

ParquetEntries::ParquetEntries(const ParquetPageHeader& header, const ParquetNode& column,
                               std::string_view body, const std::vector<ParquetValue>& dictionary)
    : num_left_(header.num_values),
      type_(*column.type),
      definition_(column.definition),
      repetition_(column.repetition),
      dictionary_(dictionary) {
  const bool v2 = header.kind == ParquetPageKind::kDataV2;
  // Version 1 does not write levels that are all zero.
  const auto levels = [&](int most, int64_t v2_bytes, std::optional<RunReader>& reader) {
    if (!v2 && most == 0) return;
    const std::string_view bytes = take_bytes(body, v2 ? static_cast<uint64_t>(v2_bytes) : take_word(body));
    if (most > 0) reader.emplace(bytes, std::bit_width(static_cast<unsigned>(most)));
  };
  levels(repetition_, header.repetition_bytes, repetitions_);
  levels(definition_, header.definition_bytes, definitions_);
  open_values(body, header.encoding);
}

void ParquetEntries::open_values(std::string_view values, int64_t encoding) {
  const bool is_whole = type_ == ParquetType::kInt32 || type_ == ParquetType::kInt64;
  if (encoding == kPlain) {
    plain_ = values;
  } else if (encoding == kPlainDictionary || encoding == kDictionary) {
    if (!values.empty())  // else all values are null
      indices_.emplace(values.substr(1), static_cast<uint8_t>(values[0]));
  } else if (encoding == kRuns && type_ == ParquetType::kBoolean) {
    if (!values.empty()) booleans_.emplace(take_bytes(values, take_word(values)), 1);
  } else if (encoding == kDelta && is_whole) {
    wholes_.emplace(values);
  } else if ((encoding == kDeltaLength || encoding == kDeltaText) && type_ == ParquetType::kBytes) {
    if (encoding == kDeltaText) prefixes_.emplace(values);
    open_lengths(values);
  } else {
    damaged("its values have encoding {}, which is not read", encoding);
  }
}

/// Opens an encoding with lengths, which all come before the bytes. Reads the lengths once to find where the
/// bytes begin.
void ParquetEntries::open_lengths(std::string_view values) {
  const auto skip = [&](const DeltaReader& numbers) {
    DeltaReader all = numbers;
    if (all.num_values() > static_cast<uint64_t>(num_left_)) damaged("a page has more lengths than values");
    for (uint64_t i = 0; i < numbers.num_values(); ++i) all.next();
    values.remove_prefix(all.position());
  };
  if (prefixes_) skip(*prefixes_);
  lengths_.emplace(values);
  skip(*lengths_);
  plain_ = values;
}

ParquetEntry ParquetEntries::next() {
  --num_left_;
  ParquetEntry entry{.repetition = 0, .definition = definition_, .value = {}};
  if (repetitions_) entry.repetition = static_cast<int>(repetitions_->next());
  if (definitions_) entry.definition = static_cast<int>(definitions_->next());
  if (entry.repetition > repetition_ || entry.definition > definition_ || entry.repetition < 0)
    damaged("a page has a level that its column cannot have");
  if (entry.definition == definition_) entry.value = next_value();
  return entry;
}

ParquetValue ParquetEntries::next_value() {
  if (indices_) {
    const uint32_t index = indices_->next();
    if (index >= dictionary_.size())
      damaged("a page wants value {} of a dictionary of {}", index, dictionary_.size());
    return dictionary_[index];
  }
  if (wholes_) return {.text = {}, .whole = wholes_->next()};
  if (booleans_) return {.text = {}, .whole = booleans_->next()};
  if (lengths_) return {.text = next_cut_text()};
  if (type_ != ParquetType::kBoolean) return take_plain(type_, plain_);
  if (bit_at_ / 8 >= plain_.size()) damaged("a page ends too early");
  const int64_t bit = static_cast<uint8_t>(plain_[bit_at_ / 8]) >> (bit_at_ % 8) & 1;
  ++bit_at_;
  return {.text = {}, .whole = bit};
}

std::string_view ParquetEntries::next_cut_text() {
  const int64_t length = lengths_->next();
  if (length < 0) damaged("a text has a negative length");
  const std::string_view rest = take_bytes(plain_, static_cast<uint64_t>(length));
  if (!prefixes_) return rest;
  const int64_t shared = prefixes_->next();
  if (shared < 0 || shared > std::ssize(text_)) damaged("a text shares more than the one before it has");
  text_.resize(static_cast<size_t>(shared));
  text_ += rest;
  return text_;
}

}  // namespace tycho
