// TensorBoard's event format: records of a TFRecord file, each a message `Event`. Written as
// tensorboard/compat/proto/{event,summary}.proto of TensorBoard 2.21 describe it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/loggers/metric_record.h"

namespace tycho {

/// Returns the CRC-32C (Castagnoli), RFC 3720.
uint32_t crc32c(std::string_view bytes);

/// Returns length, its checksum, the bytes, their checksum; checksums are CRC-32C, rotated and offset.
std::string tf_record(std::string_view bytes);

// ---- events, as records ----
/// Returns the first record of a file.
std::string version_event(double time_s);
/// Returns a record that says that the run resumes at this step: readers drop what they have of it and of
/// later steps.
std::string restart_event(double time_s, int64_t step);
/// Returns the numbers of a step, as 32-bit floats.
std::string numbers_event(const MetricRecord& record);
/// Returns the counts of a step with the edges of their bins.
std::string histogram_event(double time_s, int64_t step, const NamedHistogram& histogram);
/// Returns a text in Markdown, shown under its tag.
std::string text_event(double time_s, int64_t step, std::string_view tag, std::string_view markdown);

}  // namespace tycho
