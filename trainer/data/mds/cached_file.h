// One remote file, fetched to this machine.
#pragma once
#include <stop_token>
#include <string>

#include "trainer/data/storage/download.h"

namespace tycho {

/// Checksum that a file must have.
struct FileChecksum {
  std::string text;                 // "sha256:HEX" or another of shard_hash_names(); "": any file will do
  std::string key = "remote_hash";  // key of the recipe, for messages
};

/// Fetches `remote`, a text for parse_remote followed by the name of a file, to `path`, unless that exists
/// and has the checksum. A different file at `path` is renamed to `path`.bad once the right one is fetched. A
/// fetched file with a wrong checksum is also renamed, and fetched once more. The file gets its name when it
/// is complete; processes that want it at once fetch it once. Throws Error: as download() and PartFile do;
/// kUnusable when there is no such file or its checksum is wrong; kRecipe for a malformed checksum. Only the
/// times of `policy` are used; this function has its own advice.
void fetch_file(const std::string& remote, const std::string& path, const FileChecksum& checksum,
                const std::stop_token& stop = {}, DownloadPolicy policy = {});

}  // namespace tycho
