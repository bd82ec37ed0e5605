// Composes events for TensorBoard.
#include "trainer/loggers/event_file.h"

#include <array>

#include "trainer/loggers/wire_message.h"

namespace tycho {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table[byte] = crc;
  }
  return table;
}

uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

/// What all events begin with. Like every writer of this format, it leaves out zeros.
WireMessage event_at(double time_s, int64_t step) {
  WireMessage event;
  event.real(1, time_s);
  if (step != 0) event.integer(2, step);
  return event;
}

WireMessage text_value(std::string_view tag, std::string_view text) {
  constexpr int64_t kTensor = 2, kString = 7;  // data_class, dtype
  const WireMessage plugin = WireMessage().text(1, "text");
  const WireMessage metadata = WireMessage().message(1, plugin).integer(4, kTensor);
  const WireMessage shape = WireMessage().message(2, WireMessage().integer(1, 1));
  const WireMessage tensor = WireMessage().integer(1, kString).message(2, shape).text(8, text);
  return WireMessage().text(1, tag).message(8, tensor).message(9, metadata);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(bytes.size(), 8);
  return length + little_endian(masked(crc32c(length)), 4) + std::string(bytes) +
         little_endian(masked(crc32c(bytes)), 4);
}

std::string version_event(double time_s) {
  return tf_record(event_at(time_s, 0).text(3, "brain.Event:2").bytes());
}

std::string restart_event(double time_s, int64_t step) {
  constexpr int64_t kStart = 1;
  return tf_record(event_at(time_s, step).message(7, WireMessage().integer(1, kStart)).bytes());
}

std::string numbers_event(const MetricRecord& record) {
  WireMessage summary;
  for (const auto& [name, value] : record.numbers)
    summary.message(1, WireMessage().text(1, name).single(2, static_cast<float>(value)));
  return tf_record(event_at(record.time_s, record.step).message(5, summary).bytes());
}

std::string text_event(double time_s, int64_t step, std::string_view tag, std::string_view markdown) {
  const WireMessage summary = WireMessage().message(1, text_value(tag, markdown));
  return tf_record(event_at(time_s, step).message(5, summary).bytes());
}

}  // namespace tycho
