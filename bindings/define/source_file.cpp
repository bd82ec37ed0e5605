// Reads files of recipe code and says what is wrong with them.
#include "bindings/define/source_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/base/regular_file.h"
#include "trainer/base/text/without_place.h"

namespace tycho {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;
constexpr size_t kMostModuleFiles = 1000;

/// Returns the number of bytes after the first byte of a UTF-8 character; nullopt for a byte that begins no
/// character.
std::optional<size_t> continuation_bytes(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  if (first >= 0xF0 && first < 0xF5) return 3;
  return std::nullopt;
}

/// Checks the second byte, which rules out overlong encodings, surrogates and code points above U+10FFFF.
bool fits_second(unsigned char first, unsigned char second) {
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

}  // namespace

SourceFile read_source(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return {{}, fmt::format("{} is a folder; a recipe is a file: {}/recipe.lua?", path, path), false};
  }
  // Opening a pipe without a writer would block forever; /dev/stdin and /dev/fd/63 have writers.
  if (std::filesystem::is_fifo(path, ignored) && !path.starts_with("/dev/"))
    return {{}, fmt::format("{} is a named pipe; a recipe is a file, or /dev/stdin", path), false};
  if (struct stat info = {}; ::stat(path.c_str(), &info) < 0) {
    const int error = errno;
    const bool absent = error == ENOENT || error == ENOTDIR;
    const std::string why = absent ? did_you_mean_file(path) : fmt::format(": {}", std::strerror(error));
    return {{}, fmt::format("cannot read {}{}", path, why), absent};
  }
  try {
    return {read_typed_file(path, kMaxBytes), "", false};
  } catch (const Error& error) {
    return {{}, without_place(error.what()), false};
  }
}

std::vector<std::string> lua_files_below(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path path = entry->path();
    if (path.filename().native().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (path.extension() == ".lua" && entry->is_regular_file(error)) {
      files.push_back(path.lexically_relative(folder).string());
    }
    if (files.size() > kMostModuleFiles)
      fail(ExitCode::kRecipe,
           "[{}] expected a module of at most {} Lua files, got more: require a part of it", folder,
           kMostModuleFiles);
  }
  if (error) fail(ExitCode::kRecipe, "[{}] cannot be listed: {}", folder, error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::string did_you_mean_file(const std::string& wanted) {
  const std::filesystem::path path = wanted;
  std::vector<std::string> names;
  std::error_code ignored;
  const auto folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".lua") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  const std::vector<std::string> near = nearest(path.stem().string() + ".lua", names);
  if (!near.empty()) return fmt::format("; did you mean {}?", (path.parent_path() / near.front()).string());
  const std::filesystem::path usual = std::filesystem::path("recipes") / (path.stem().string() + ".lua");
  return std::filesystem::exists(usual, ignored) ? fmt::format("; did you mean {}?", usual.string()) : "";
}

std::optional<size_t> find_utf8_error(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const std::optional<size_t> more = continuation_bytes(byte(at));
    if (!more || at + *more >= text.size()) return at;
    if (*more > 0 && !fits_second(byte(at), byte(at + 1))) return at;
    for (size_t i = 2; i <= *more; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return at;
    }
    at += *more + 1;
  }
  return std::nullopt;
}

}  // namespace tycho
