// Cuts are found by reading a small window near each place where one is wanted, so planning never reads whole
// files.
#include "trainer/data/documents.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/pretokenize.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWindowBytes = 16 << 10;

std::vector<std::string> list_folder(const std::string& folder, const std::vector<std::string>& extensions) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    const auto matches = [&](const std::string& extension) { return path.ends_with(extension); };
    if (it->is_regular_file(error) && std::any_of(extensions.begin(), extensions.end(), matches))
      found.push_back(path);
  }
  if (error) fail(ExitCode::kUnusable, "[data] cannot read folder {}: {}", folder, error.message());
  if (found.empty()) {
    fail(ExitCode::kUnusable,
         "[data] folder {} has no file that ends in {}; name other extensions or the files themselves",
         folder, fmt::join(extensions, " or "));
  }
  std::sort(found.begin(), found.end());
  return found;
}

int64_t file_bytes(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path, error.message());
  return static_cast<int64_t>(bytes);
}

/// The first safe cut of a file at or after `from`, or its size.
int64_t find_cut(const std::string& path, int64_t from, int64_t size) {
  std::string window;
  while (from < size) {
    // One byte more in front: whether a cut is safe depends on the byte before it.
    window.resize(static_cast<size_t>(std::min(kWindowBytes, size - from + 1)));
    read_exactly(path, from - 1, window.data(), window.size());
    const size_t cut = find_safe_cut(window, 1);
    if (cut != std::string::npos) return from - 1 + static_cast<int64_t>(cut);
    from += static_cast<int64_t>(window.size()) - 1;
  }
  return size;
}

}  // namespace

std::vector<std::string> list_documents(const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& extensions) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (fs::is_directory(input, error)) {
      const auto found = list_folder(input, extensions);
      paths.insert(paths.end(), found.begin(), found.end());
    } else if (fs::exists(input, error)) {
      paths.push_back(input);
    } else {
      fail(ExitCode::kUnusable, "[data] there is no file or folder {}", input);
    }
  }
  return paths;
}

std::vector<TextChunk> plan_chunks(const std::vector<std::string>& paths, bool may_cut, int64_t chunk_bytes) {
  std::vector<TextChunk> chunks;
  for (size_t i = 0; i < paths.size(); ++i) {
    const int64_t size = file_bytes(paths[i]);
    TextChunk chunk{.document = static_cast<int64_t>(i), .begin = 0, .end = size};
    while (may_cut && size - chunk.begin > 2 * chunk_bytes) {
      const int64_t cut = find_cut(paths[i], chunk.begin + chunk_bytes, size);
      if (cut == size) break;
      chunk.end = cut;
      chunk.last = false;
      chunks.push_back(chunk);
      chunk = {.document = chunk.document, .begin = cut, .end = size, .first = false};
    }
    chunks.push_back(chunk);
  }
  return chunks;
}

std::string read_chunk(const std::vector<std::string>& paths, const TextChunk& chunk) {
  std::string text(static_cast<size_t>(chunk.end - chunk.begin), '\0');
  if (!text.empty())
    read_exactly(paths[static_cast<size_t>(chunk.document)], chunk.begin, text.data(), text.size());
  return text;
}

}  // namespace tycho
