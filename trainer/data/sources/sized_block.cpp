// The buffer doubles until it has the size that the block should have.
#include "trainer/data/sources/sized_block.h"

#include <algorithm>
#include <memory>
#include <span>

#include "trainer/data/storage/stream_decoder.h"

namespace tycho {

std::optional<std::string> decompress_sized(CompressionKind kind, std::string_view stored, size_t raw_bytes) {
  constexpr size_t kFirstRoom = 64 << 10;
  std::string raw;
  std::span<char> room;
  const std::unique_ptr<StreamDecoder> decoder = make_stream_decoder(kind);
  bool ended = false;
  while (!stored.empty() || !ended) {
    if (room.empty() && raw.size() < raw_bytes) {
      const size_t made = raw.size();
      raw.resize(std::min(raw_bytes, std::max(2 * made, kFirstRoom)));
      room = std::span(raw).subspan(made);
    }
    const size_t before = stored.size(), room_before = room.size();
    ended = decoder->decode(stored, room);
    if (!ended && stored.size() == before && room.size() == room_before) return std::nullopt;
  }
  if (!room.empty() || raw.size() != raw_bytes) return std::nullopt;
  return raw;
}

}  // namespace tycho
