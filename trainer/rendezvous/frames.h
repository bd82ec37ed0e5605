// Numbers and texts as bytes, and frames of them: the messages between ranks outside of collectives.
// Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tycho {

/// Writes numbers in little-endian order, and texts as their length (4 bytes) and their bytes.
class WireWriter {
 public:
  WireWriter& u8(uint8_t value) { return number(value, 1); }
  WireWriter& u32(uint32_t value) { return number(value, 4); }
  WireWriter& u64(uint64_t value) { return number(value, 8); }
  WireWriter& f64(double value);
  WireWriter& text(std::string_view text);
  const std::string& bytes() const { return bytes_; }

 private:
  WireWriter& number(uint64_t value, int num_bytes);
  std::string bytes_;
};

/// Reads the output of a WireWriter. Throws Error when the bytes end too early, or a text is longer than
/// allowed.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  double f64();
  std::string text(size_t max_bytes);
  /// Throws Error if bytes are left.
  void end() const;

 private:
  uint64_t number(int num_bytes);
  std::string_view take(size_t num_bytes);
  std::string_view rest_;
};

struct Frame {
  uint8_t kind = 0;
  std::string body;
};

/// Most bytes of kind and body: before a client has proved itself, and between ranks.
inline constexpr size_t kMaxCallerFrame = 512, kMaxFrame = 64 << 10;

/// Returns a frame: the length of kind and body (4 bytes), the kind, the body.
std::string frame_bytes(uint8_t kind, std::string_view body);

/// Reads one frame after the other from a connection, and never a byte beyond a frame.
class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes) : max_bytes_(max_bytes) {}
  /// Returns the number of bytes that the current frame still needs, as far as is known: 1 or more.
  size_t wanted() const;
  /// Adds at most wanted() bytes. Returns the frame when they complete it. Throws Error for a length that is
  /// not allowed, before memory is allocated for it.
  std::optional<Frame> add(std::string_view bytes);

 private:
  size_t max_bytes_;
  std::string bytes_;
  size_t body_bytes_ = 0;  // kind included; 0 until the length is known
};

}  // namespace tycho
