// A line with the hash of the rest, then the text.
#include "trainer/base/cached_text.h"

#include <fmt/format.h>

#include <filesystem>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"

namespace tycho {
namespace {

std::string header_of(std::string_view text) { return fmt::format("tycho cached {}\n", hash_hex(text)); }

}  // namespace

std::string cached_folder(const std::string& kind) {
  if (const std::string caches = environment_variable("XDG_CACHE_HOME"); !caches.empty())
    return caches + "/tycho/" + kind;
  const std::string home = environment_variable("HOME");
  return home.empty() ? "" : home + "/.cache/tycho/" + kind;
}

std::optional<std::string> cached_text(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
  try {
    const std::string file = read_file(path);
    const size_t end = file.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string text = file.substr(end + 1);
    if (file.substr(0, end + 1) != header_of(text)) return std::nullopt;
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void cache_text(const std::string& path, std::string_view text) {
  try {
    make_dirs(real_files(), std::filesystem::path(path).parent_path().string());
    write_file_atomically(real_files(), path, header_of(text) + std::string(text));
  } catch (const Error&) {  // a full or read-only disk costs a second at the next start, not this run
  }
}

}  // namespace tycho
