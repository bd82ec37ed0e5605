// PageHeader of parquet.thrift, and the encodings of byte arrays.
#include "trainer/data/parquet/parquet_page.h"

#include <snappy.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "trainer/base/error.h"
#include "trainer/data/compression/decoder.h"
#include "trainer/data/parquet/thrift.h"

namespace tycho {
namespace {

using Type = ThriftReader::Type;

constexpr int64_t kMostPageBytes = int64_t{512} << 20;
constexpr int64_t kMostPageValues = int64_t{64} << 20;
constexpr int64_t kPlain = 0, kPlainDictionary = 2, kDeltaLength = 6, kDeltaText = 7, kDictionary = 8;

template <class... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> what, Args&&... args) {
  fail(ExitCode::kUnusable, "[parquet] {}", fmt::format(what, std::forward<Args>(args)...));
}

/// The header of one kind of page: which field is what.
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

/// Room grows with what comes: a header may claim any size.
std::string decompress_with(CompressionKind kind, std::string_view in, size_t raw_bytes) {
  constexpr size_t kFirstRoom = 64 << 10;
  std::string raw;
  std::span<char> room;
  const std::unique_ptr<Decoder> decoder = make_decoder(kind);
  bool ended = false;
  while (!in.empty() || !ended) {
    if (room.empty() && raw.size() < raw_bytes) {
      const size_t made = raw.size();
      raw.resize(std::min(raw_bytes, std::max(2 * made, kFirstRoom)));
      room = std::span(raw).subspan(made);
    }
    const size_t before = in.size(), room_before = room.size();
    ended = decoder->decode(in, room);
    if (!ended && in.size() == before && room.size() == room_before)
      damaged("a page does not decompress to its {} bytes", raw_bytes);
  }
  if (!room.empty() || raw.size() != raw_bytes)
    damaged("a page does not decompress to its {} bytes", raw_bytes);
  return raw;
}

std::string decompress_block(ParquetCodec codec, std::string_view in, size_t raw_bytes) {
  switch (codec) {
    case ParquetCodec::kNone:
      if (in.size() != raw_bytes) damaged("a page has {} bytes, its header says {}", in.size(), raw_bytes);
      return std::string(in);
    case ParquetCodec::kSnappy: {
      constexpr size_t kMostGrowth = 64;  // of a copy: three bytes stand for at most 64
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
  // A page of nulls alone has no values, and some writers do not compress these nothings.
  if (raw_bytes > levels || !stored.empty()) body += decompress_block(used, stored, raw_bytes - levels);
  return body;
}

std::vector<std::string_view> read_dictionary(const ParquetPageHeader& header, std::string_view body) {
  if (header.encoding != kPlain && header.encoding != kPlainDictionary)
    damaged("a dictionary has encoding {}, which is not known", header.encoding);
  std::vector<std::string_view> texts;
  for (int64_t i = 0; i < header.num_values; ++i) texts.push_back(take_bytes(body, take_word(body)));
  return texts;
}

ParquetTexts::ParquetTexts(const ParquetPageHeader& header, int max_definition, std::string_view body,
                           const std::vector<std::string_view>& dictionary)
    : num_left_(header.num_values),
      max_definition_(static_cast<uint32_t>(max_definition)),
      dictionary_(dictionary) {
  const int width = std::bit_width(max_definition_);
  if (header.kind == ParquetPageKind::kDataV2) {
    take_bytes(body, static_cast<uint64_t>(header.repetition_bytes));
    const std::string_view levels = take_bytes(body, static_cast<uint64_t>(header.definition_bytes));
    if (max_definition > 0) levels_.emplace(levels, width);
  } else if (max_definition > 0) {
    levels_.emplace(take_bytes(body, take_word(body)), width);
  }
  open_values(body, header.encoding);
}

void ParquetTexts::open_values(std::string_view values, int64_t encoding) {
  switch (encoding) {
    case kPlain: plain_ = values; return;
    case kPlainDictionary:
    case kDictionary:
      if (values.empty()) return;  // all are null
      indices_.emplace(values.substr(1), static_cast<uint8_t>(values[0]));
      return;
    case kDeltaText: prefixes_.emplace(values); break;
    case kDeltaLength: break;
    default: damaged("texts have encoding {}, which is not read", encoding);
  }
  // All lengths come before the bytes: where these begin is known when the lengths have been read once.
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

std::optional<std::string_view> ParquetTexts::next() {
  --num_left_;
  if (levels_) {
    const uint32_t level = levels_->next();
    if (level > max_definition_) damaged("a page has a level that its column cannot have");
    if (level < max_definition_) return std::nullopt;
  }
  return next_value();
}

std::string_view ParquetTexts::next_value() {
  if (indices_) {
    const uint32_t index = indices_->next();
    if (index >= dictionary_.size())
      damaged("a page wants text {} of a dictionary of {}", index, dictionary_.size());
    return dictionary_[index];
  }
  if (!lengths_) return take_bytes(plain_, take_word(plain_));
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
