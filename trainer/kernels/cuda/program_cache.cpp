// One file for each program: a line with the hash of the rest, then the code.
#include "trainer/kernels/cuda/program_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"

namespace tycho::cuda {
namespace {

std::string header_of(const std::string& code) { return fmt::format("tycho program {}\n", hash_hex(code)); }

std::optional<std::string> read_program(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
  try {
    const std::string file = read_file(path);
    const size_t end = file.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string code = file.substr(end + 1);
    if (file.substr(0, end + 1) != header_of(code)) return std::nullopt;
    return code;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string cached_program(const std::string& folder, const std::string& key,
                           const std::function<std::string()>& make) {
  if (folder.empty()) return make();
  const std::string path = folder + "/" + hash_hex(key);
  if (std::optional<std::string> code = read_program(path)) return *std::move(code);
  std::string code = make();
  try {
    make_dirs(real_files(), folder);
    write_file_atomically(real_files(), path, header_of(code) + code);
  } catch (const Error&) {  // a full or read-only disk costs a second at the next start, not this run
  }
  return code;
}

}  // namespace tycho::cuda
