// One file for each program.
#include "trainer/kernels/cuda/program_cache.h"

#include <optional>

#include "trainer/base/cached_text.h"
#include "trainer/base/hash.h"

namespace tycho::cuda {

std::string cached_program(const std::string& folder, const std::string& key,
                           const std::function<std::string()>& make) {
  if (folder.empty()) return make();
  const std::string path = folder + "/" + hash_hex(key);
  if (std::optional<std::string> code = cached_text(path)) return *std::move(code);
  std::string code = make();
  cache_text(path, code);
  return code;
}

}  // namespace tycho::cuda
