// A sequence is some literal bytes, then a copy of earlier output; the last sequence has no copy.
#include "trainer/data/storage/lz4_block.h"

#include <cstdint>
#include <optional>

namespace tycho {
namespace {

constexpr size_t kLongLength = 15, kShortestCopy = 4;

class BlockReader {
 public:
  explicit BlockReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  std::optional<uint8_t> byte() {
    if (rest_.empty()) return std::nullopt;
    const auto value = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  /// Reads the rest of a length: four full bits continue in bytes, as long as these are full.
  std::optional<size_t> length(size_t bits) {
    if (bits < kLongLength) return bits;
    for (size_t length = bits;;) {
      const auto more = byte();
      if (!more) return std::nullopt;
      length += *more;
      if (*more < 255) return length;
    }
  }
  std::optional<std::string_view> bytes(size_t count) {
    if (count > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace

bool decode_lz4_block(std::string_view block, size_t most_bytes, std::string& out, size_t history) {
  const size_t begin = out.size();
  const auto room = [&] { return most_bytes - (out.size() - begin); };
  BlockReader in(block);
  while (const auto token = in.byte()) {
    const auto num_literals = in.length(*token >> 4);
    const auto literals = num_literals ? in.bytes(*num_literals) : std::nullopt;
    if (!literals || literals->size() > room()) return false;
    out += *literals;
    if (in.at_end()) return true;
    const auto low = in.byte(), high = in.byte();
    const auto length = high ? in.length(*token & 15) : std::nullopt;
    if (!length || *length + kShortestCopy > room()) return false;
    const size_t back = *low | static_cast<size_t>(*high) << 8;
    if (back == 0 || back > out.size() - begin + history) return false;
    // Byte by byte, because a copy may overlap its own output.
    for (size_t i = 0; i < *length + kShortestCopy; ++i) out += out[out.size() - back];
  }
  return false;  // every block ends with bytes as they are
}

}  // namespace tycho
