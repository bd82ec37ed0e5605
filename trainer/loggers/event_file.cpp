// Composes events for TensorBoard.
#include "trainer/loggers/event_file.h"

#include <array>
#include <bit>

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

/// Returns the beginning of every event. Leaves out zeros, like every writer of this format.
WireMessage event_at(double time_s, int64_t step) {
  WireMessage event;
  event.real(1, time_s);
  if (step != 0) event.integer(2, step);
  return event;
}

/// Returns a tensor value, and names the part of TensorBoard that shows it.
WireMessage tensor_value(std::string_view tag, const WireMessage& tensor, std::string_view shown_by) {
  constexpr int64_t kTensor = 2;  // data_class
  const WireMessage plugin = WireMessage().text(1, shown_by);
  const WireMessage metadata = WireMessage().message(1, plugin).integer(4, kTensor);
  return WireMessage().text(1, tag).message(8, tensor).message(9, metadata);
}

WireMessage dim(int64_t size) { return WireMessage().integer(1, size); }

WireMessage text_value(std::string_view tag, std::string_view text) {
  constexpr int64_t kString = 7;  // dtype
  const WireMessage shape = WireMessage().message(2, dim(1));
  return tensor_value(tag, WireMessage().integer(1, kString).message(2, shape).text(8, text), "text");
}

/// Returns a row for each bin: its edges and its count.
WireMessage histogram_value(const NamedHistogram& histogram) {
  constexpr int64_t kDouble = 2;  // dtype
  const size_t num_bins = histogram.counts.size();
  const double width = (histogram.high - histogram.low) / static_cast<double>(num_bins);
  const auto edge = [&](size_t i) {
    return i == num_bins ? histogram.high : histogram.low + width * static_cast<double>(i);
  };
  std::string rows;
  for (size_t i = 0; i < num_bins; ++i)
    for (const double value : {edge(i), edge(i + 1), static_cast<double>(histogram.counts[i])})
      rows += little_endian(std::bit_cast<uint64_t>(value), 8);
  const WireMessage shape = WireMessage().message(2, dim(static_cast<int64_t>(num_bins))).message(2, dim(3));
  return tensor_value(histogram.name, WireMessage().integer(1, kDouble).message(2, shape).text(4, rows),
                      "histograms");
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

std::string histogram_event(double time_s, int64_t step, const NamedHistogram& histogram) {
  const WireMessage summary = WireMessage().message(1, histogram_value(histogram));
  return tf_record(event_at(time_s, step).message(5, summary).bytes());
}

std::string text_event(double time_s, int64_t step, std::string_view tag, std::string_view markdown) {
  const WireMessage summary = WireMessage().message(1, text_value(tag, markdown));
  return tf_record(event_at(time_s, step).message(5, summary).bytes());
}

}  // namespace tycho
