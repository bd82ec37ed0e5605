// An interrupted download starts over: without a checksum its bytes might be from another version.
#include "trainer/data/mds/cached_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/storage/download.h"
#include "trainer/data/storage/open_remote_files.h"
#include "trainer/data/storage/part_file.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

constexpr int64_t kHashBlockBytes = 4 << 20;

constexpr PartAdvice kFileAdvice = {"free room on that disk, or choose another path",
                                    "choose another path, or put the file there yourself"};

void check_digits(const FileChecksum& checksum) {
  if (checksum.text.empty()) return;
  const size_t colon = checksum.text.find(':');
  const std::string name = checksum.text.substr(0, colon);
  ShardHasher known(name);
  const size_t given = checksum.text.size() - name.size() - 1, wanted = shard_hash_digits(name);
  if (given != wanted)
    fail(ExitCode::kRecipe, "[data] {} has {} digits, and {} has {}", checksum.key, given, name, wanted);
}

/// Says how the checksum of a file differs; "" if it matches.
std::string hash_problem(const std::string& path, const FileChecksum& checksum) {
  if (checksum.text.empty()) return "";
  const std::string name = checksum.text.substr(0, checksum.text.find(':'));
  ShardHasher hasher(name);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  std::string block(static_cast<size_t>(std::min(size, kHashBlockBytes)), '\0');
  for (int64_t at = 0; at < size; at += kHashBlockBytes) {
    const auto count = static_cast<size_t>(std::min(size - at, kHashBlockBytes));
    read_exactly(path, at, block.data(), count);
    hasher.update(block.data(), count);
  }
  const std::string given = name + ":" + hasher.hex();
  return given == checksum.text ? "" : fmt::format("is {}, and {} is {}", given, checksum.key, checksum.text);
}

}  // namespace

void fetch_file(const std::string& remote, const std::string& path, const FileChecksum& checksum,
                const std::stop_token& stop, DownloadPolicy policy) {
  policy.when_full = kFileAdvice.no_room;
  policy.when_no_answer = "or put the file where path says yourself: then it is not fetched";
  check_digits(checksum);
  std::string old_problem;  // problem of an existing file
  const auto is_there = [&] {
    if (::access(path.c_str(), F_OK) != 0) return false;
    old_problem = hash_problem(path, checksum);
    return old_problem.empty();
  };
  if (is_there()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) make_dirs(real_files(), folder.string());
  const size_t slash = remote.rfind('/');
  const std::string name = remote.substr(slash + 1);  // the whole text if there is no slash
  const RemoteUri place = parse_remote(slash == std::string::npos ? "." : remote.substr(0, slash));
  const std::unique_ptr<RemoteFiles> files = open_remote_files(place, /*sas_env=*/"");
  const std::string bad_path = path + ".bad";
  std::string problem;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    std::optional<PartFile> part = PartFile::claim(path + ".part", is_there, stop, kFileAdvice);
    if (!part) return;
    part->cut(0);
    DownloadTarget target{part->descriptor(), part->path(), 0, INT64_MAX};
    if (!download(*files, name, target, policy, stop)) {
      part->remove();
      fail(ExitCode::kUnusable, "[data] {} does not exist: correct remote{}", files->place_of(name),
           old_problem.empty() ? "" : fmt::format(". {} {}", path, old_problem));
    }
    problem = hash_problem(part->path(), checksum);
    if (problem.empty()) {
      if (!old_problem.empty()) real_files().rename(path, bad_path);
      return part->publish(path);
    }
    part->set_aside(bad_path);
  }
  fail(
      ExitCode::kUnusable,
      "[data] {} was fetched twice and {}. What came is in {}; if that is the file that you want, correct {}",
      files->place_of(name), problem, bad_path, checksum.key);
}

}  // namespace tycho
