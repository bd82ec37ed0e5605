// Reads decoders by the names that the library `tokenizers` gives them.
#include "trainer/data/tokenizer/token_decoder.h"

#include "trainer/data/tokenizer/byte_level.h"
#include "trainer/data/tokenizer/pattern_json.h"

namespace tycho {
namespace {

using Reader = TokenizerReader;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// Returns the byte of "<0x0A>"; -1 for other spellings.
int byte_of(const std::string& spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  const int high = hex_digit(spelling[3]), low = hex_digit(spelling[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string replaced(std::string text, const std::string& literal, const std::string& content) {
  for (size_t at = text.find(literal); at != std::string::npos; at = text.find(literal, at + content.size()))
    text.replace(at, literal.size(), content);
  return text;
}

int64_t count_of(const Reader& reader, const Reader::Value& value, const char* key) {
  const Reader::Value& count = reader.member(value, key, "decoder Strip");
  if (!count.is_number_unsigned()) reader.malformed("\"{}\" of decoder Strip must be a whole number", key);
  return static_cast<int64_t>(count.get<uint64_t>());
}

}  // namespace

TokenDecoder::TokenDecoder(std::string space, bool strips)
    : steps_{{Kind::kReplace, std::move(space), " "}, {Kind::kByteFallback, {}, {}}},
      stripped_(strips ? " " : "") {}

TokenDecoder::TokenDecoder(const Reader& reader, const Reader::Value& value, bool byte_level) {
  bool fused = false;
  for (const Reader::Value& item : reader.flat(value, "decoders")) read_step(reader, item, fused);
  const bool one_byte_level = steps_.size() == 1 && steps_[0].kind == Kind::kByteLevel;
  bool any_byte_level = false;
  for (const Step& step : steps_) any_byte_level = any_byte_level || step.kind == Kind::kByteLevel;
  if (steps_.empty())
    reader.unsupported("a tokenizer without a decoder, whose tokens come back with spaces between,");
  if (byte_level && !one_byte_level) reader.unsupported("pre_tokenizer ByteLevel without decoder ByteLevel");
  if (!byte_level && any_byte_level) reader.unsupported("decoder ByteLevel without pre_tokenizer ByteLevel");
}

void TokenDecoder::read_step(const Reader& reader, const Reader::Value& value, bool& fused) {
  const std::string kind = kind_of(value);
  if (fused && kind != "Strip" && kind != "Fuse")
    reader.unsupported(fmt::format("decoder {} after Fuse", kind));
  if (kind == "ByteLevel") {
    steps_.push_back({Kind::kByteLevel, {}, {}});
  } else if (kind == "ByteFallback") {
    steps_.push_back({Kind::kByteFallback, {}, {}});
  } else if (kind == "Fuse") {
    fused = true;
  } else if (kind == "Replace") {
    const SearchPattern pattern = read_pattern(reader, value, "decoder Replace");
    if (pattern.is_regex) reader.unsupported("a Regex in decoder Replace");
    steps_.push_back({Kind::kReplace, pattern.literal, reader.text(value, "content", "decoder Replace")});
  } else if (kind == "Metaspace") {
    steps_.push_back({Kind::kMetaspace, reader.text(value, "replacement", "decoder Metaspace"), " "});
    if (steps_.back().literal.empty()) reader.malformed("the replacement of decoder Metaspace is empty");
    const bool never = value.contains("prepend_scheme") ? value["prepend_scheme"] == "never"
                                                        : !reader.flag(value, "add_prefix_space", true);
    drops_first_marks_ = !never;
  } else if (kind == "Strip") {
    stripped_ = reader.text(value, "content", "decoder Strip");
    const int64_t start = count_of(reader, value, "start"), stop = count_of(reader, value, "stop");
    if (!fused || start > 1 || stop > 0)
      reader.unsupported("decoder Strip, but for one character at the start after Fuse,");
    if (start == 0) stripped_.clear();
  } else {
    reader.unsupported("decoder " + kind);
  }
}

std::string TokenDecoder::decode(const std::string& spelling, bool first) const {
  std::string text = spelling;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kByteLevel: return from_byte_level(text).value_or(text);
      case Kind::kReplace: text = replaced(std::move(text), step.literal, step.content); break;
      case Kind::kMetaspace:
        text = replaced(std::move(text), step.literal, first && drops_first_marks_ ? "" : step.content);
        break;
      case Kind::kByteFallback:
        if (const int byte = byte_of(text); byte >= 0) text.assign(1, static_cast<char>(byte));
        break;
    }
  }
  if (first && !stripped_.empty() && text.starts_with(stripped_)) text.erase(0, stripped_.size());
  return text;
}

std::string TokenDecoder::bytes(const std::string& spelling) const { return decode(spelling, false); }

std::string TokenDecoder::first_bytes(const std::string& spelling) const { return decode(spelling, true); }

}  // namespace tycho
