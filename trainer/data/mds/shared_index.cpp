// An index is known by its folders, and its files by what changes when they are written or replaced.
#include "trainer/data/mds/shared_index.h"

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace tycho {
namespace {

/// Device, inode, size and time of index.json and of the note beside it; zeros for a file that is not there.
using Version = std::array<std::array<int64_t, 5>, 2>;

Version version_of(const std::string& dir) {
  Version version = {};
  for (size_t i = 0; i < version.size(); ++i)
    if (struct stat info{}; ::stat((dir + (i == 0 ? "/index.json" : "/tycho.json")).c_str(), &info) == 0)
      version[i] = {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino), info.st_size,
                    info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  return version;
}

}  // namespace

std::shared_ptr<const MdsIndex> shared_mds_index(const std::string& dir, const std::string& decompress_dir) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::pair<Version, std::shared_ptr<const MdsIndex>>>
      read;
  const std::lock_guard lock(mutex);
  const Version now = version_of(dir);
  auto& [version, index] = read[{dir, decompress_dir}];
  if (index == nullptr || version != now) {
    index = std::make_shared<const MdsIndex>(read_mds_index(dir, decompress_dir));
    version = now;
  }
  return index;
}

}  // namespace tycho
