// Finds the footer from the end of the file.
#include "trainer/data/sources/parquet/parquet_file.h"

#include <cstring>
#include <filesystem>

#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

constexpr int64_t kTailBytes = 8;  // the footer's length, and "PAR1"
constexpr int64_t kMostFooterBytes = int64_t{256} << 20;

/// Returns the message of an Error without its tag.
std::string_view reason(const Error& error) {
  const std::string_view what = error.what();
  return what.substr(what.starts_with('[') ? what.find(' ') + 1 : 0);
}

/// Adds the paths of leaves, as many as fit into a message.
void add_names(const ParquetNode& node, std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  for (const ParquetNode& child : node.children) {
    if (names.size() == kShown) return;
    child.type ? names.push_back('"' + child.path + '"') : add_names(child, names);
  }
}

}  // namespace

ParquetFile::ParquetFile(const std::string& path) : path_(path) {
  std::error_code error;
  num_bytes_ = static_cast<int64_t>(std::filesystem::file_size(path_, error));
  if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path_, error.message());
  const std::string tail = num_bytes_ < 12 ? "" : read(num_bytes_ - kTailBytes, kTailBytes);
  if (tail.ends_with("PARE")) fail(ExitCode::kUnusable, "[data] {} is encrypted, which is not read", path_);
  uint32_t footer_bytes = 0;
  if (!tail.empty()) std::memcpy(&footer_bytes, tail.data(), sizeof footer_bytes);
  const int64_t pages_end = num_bytes_ - kTailBytes - footer_bytes;
  if (!tail.ends_with("PAR1") || footer_bytes > kMostFooterBytes || pages_end < 4)
    fail(ExitCode::kUnusable,
         "[data] {} is not a whole Parquet file: its end is missing; copy or download it again", path_);
  try {
    footer_ = read_parquet_footer(read(pages_end, footer_bytes), pages_end, "[data] " + path_);
  } catch (const Error& broken) {
    if (std::string_view(broken.what()).starts_with("[data]")) throw;
    fail(ExitCode::kUnusable, "[data] {}: its footer cannot be read: {}; copy or download it again", path_,
         reason(broken));
  }
}

std::string ParquetFile::read(int64_t offset, int64_t count) const {
  std::string bytes(static_cast<size_t>(count), '\0');
  read_exactly(path_, offset, bytes.data(), bytes.size());
  return bytes;
}

void ParquetFile::fail_row(int64_t row, const Error& broken) const {
  fail(ExitCode::kUnusable, "[data] {}: row {} cannot be read: {}; copy or download it again", path_, row + 1,
       reason(broken));
}

void ParquetFile::fail_column(const std::string& name, std::string_view advice) const {
  std::vector<std::string> names;
  add_names(footer_.schema, names);
  fail(ExitCode::kUnusable, "[data] {} has no column {}; it has {}. {}", path_, name,
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), advice);
}

}  // namespace tycho
