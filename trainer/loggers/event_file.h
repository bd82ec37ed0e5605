// TensorBoard's event format: records of a TFRecord file, each a message `Event`. Written as
// tensorboard/compat/proto/{event,summary}.proto of TensorBoard 2.21 describe it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/loggers/metric_record.h"

namespace tycho {

/// CRC-32C (Castagnoli), RFC 3720.
uint32_t crc32c(std::string_view bytes);

/// Length, its checksum, the bytes, their checksum: checksums are CRC-32C, rotated and offset.
std::string tf_record(std::string_view bytes);

// ---- events, as records ----
/// The first of a file.
std::string version_event(double time_s);
/// The run goes on at this step: readers forget what they have of it and of later ones.
std::string restart_event(double time_s, int64_t step);
/// Numbers of a step, as 32-bit floats.
std::string numbers_event(const MetricRecord& record);
/// Counts of a step, with the edges of their bins.
std::string histogram_event(double time_s, int64_t step, const NamedHistogram& histogram);
/// A text in Markdown, shown under its tag.
std::string text_event(double time_s, int64_t step, std::string_view tag, std::string_view markdown);

}  // namespace tycho
