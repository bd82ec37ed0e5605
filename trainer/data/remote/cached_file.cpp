// An interrupted download starts over: without a checksum its bytes might be from another version.
#include "trainer/data/remote/cached_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/part_file.h"
#include "trainer/data/remote/download.h"
#include "trainer/data/remote_place.h"

namespace tycho {
namespace {

constexpr int64_t kHashBlockBytes = 4 << 20;

constexpr PartAdvice kFileAdvice = {"free room on that disk, or choose another path",
                                    "choose another path, or put the file there yourself"};

/// What is wrong with a file; "" when nothing is.
std::string hash_problem(const std::string& path, const std::string& wanted) {
  if (wanted.empty()) return "";
  const std::string name = wanted.substr(0, wanted.find(':'));
  ShardHasher hasher(name);
  const std::string digits = wanted.substr(name.size() + 1);
  if (digits.size() != shard_hash_digits(name))
    fail(ExitCode::kRecipe, "[data] remote_hash has {} digits, and {} has {}", digits.size(), name,
         shard_hash_digits(name));
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  std::string block(static_cast<size_t>(std::min(size, kHashBlockBytes)), '\0');
  for (int64_t at = 0; at < size; at += kHashBlockBytes) {
    const auto count = static_cast<size_t>(std::min(size - at, kHashBlockBytes));
    read_exactly(path, at, block.data(), count);
    hasher.update(block.data(), count);
  }
  const std::string given = hasher.hex();
  return given == digits ? "" : fmt::format("has the {} {}, and remote_hash is {}", name, given, digits);
}

}  // namespace

void fetch_file(const std::string& remote, const std::string& path, const std::string& hash,
                const std::stop_token& stop) {
  const auto is_there = [&] { return ::access(path.c_str(), F_OK) == 0; };
  const auto check = [&] {
    if (const std::string problem = hash_problem(path, hash); !problem.empty())
      fail(ExitCode::kUnusable, "[data] {} {}: delete the file to fetch it again, or correct remote_hash",
           path, problem);
  };
  if (is_there()) return check();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) make_dirs(real_files(), folder.string());
  std::optional<PartFile> part = PartFile::claim(path + ".part", is_there, stop, kFileAdvice);
  if (!part) return check();
  part->cut(0);
  const size_t slash = remote.rfind('/');
  const std::string name = remote.substr(slash + 1);  // all of it where there is no slash
  const RemotePlace place = parse_remote(slash == std::string::npos ? "." : remote.substr(0, slash));
  const std::unique_ptr<RemoteFiles> files = open_remote_files(place, /*sas_env=*/"");
  DownloadTarget target{part->descriptor(), part->path(), 0, INT64_MAX};
  if (!download(*files, name, target, {}, stop)) {
    part->remove();
    fail(ExitCode::kUnusable, "[data] {} does not exist: correct remote", files->place_of(name));
  }
  if (const std::string problem = hash_problem(part->path(), hash); !problem.empty()) {
    part->remove();
    fail(ExitCode::kUnusable, "[data] {} {}: it is another file; correct remote_hash if you want this one",
         files->place_of(name), problem);
  }
  part->publish(path);
}

}  // namespace tycho
