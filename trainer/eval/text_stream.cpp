// Holds back bytes that may belong to a UTF-8 character or a stop string.
#include "trainer/eval/text_stream.h"

#include <algorithm>
#include <utility>

namespace tycho {
namespace {

/// Returns the number of bytes at the end that begin an incomplete UTF-8 character.
size_t unfinished_character(const std::string& bytes) {
  for (size_t back = 1; back <= std::min<size_t>(4, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/// Returns the number of bytes at the end that `stop` may begin with.
size_t unfinished_stop(const std::string& bytes, const std::string& stop) {
  for (size_t length = std::min(bytes.size(), stop.size() - 1); length > 0; --length)
    if (bytes.compare(bytes.size() - length, length, stop, 0, length) == 0) return length;
  return 0;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops, std::function<void(const std::string&)> emit)
    : stops_(std::move(stops)), emit_(std::move(emit)) {}

bool TextStream::add(const std::string& bytes) {
  held_ += bytes;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t found = held_.find(stop);
    if (found == std::string::npos) continue;
    if (std::pair(found + stop.size(), found) < std::pair(end, begin))
      begin = found, end = found + stop.size();
  }
  if (begin != std::string::npos) {
    emit(begin);
    held_.clear();
    return true;
  }
  size_t kept = unfinished_character(held_);
  for (const std::string& stop : stops_) kept = std::max(kept, unfinished_stop(held_, stop));
  emit(held_.size() - kept);
  return false;
}

void TextStream::finish() { emit(held_.size()); }

void TextStream::emit(size_t num_bytes) {
  if (num_bytes > 0) emit_(held_.substr(0, num_bytes));
  held_.erase(0, num_bytes);
}

}  // namespace tycho
