// One remote file, fetched to this machine.
#pragma once
#include <stop_token>
#include <string>

#include "trainer/data/remote/download.h"

namespace tycho {

/// What a file must have.
struct FileChecksum {
  std::string text;                 // "sha256:HEX" or another of shard_hash_names(); "": any file will do
  std::string key = "remote_hash";  // of the recipe, for messages
};

/// Fetches `remote`, a place as parse_remote reads with the name of a file behind it, to `path`, unless that
/// is there and has the checksum. Another file at `path` becomes `path`.bad once the right one has come. What
/// is fetched and has another checksum becomes that too and is fetched once more. The file gets its name when
/// it is whole; processes that want it at once fetch it once. Throws Error: as download() and PartFile do;
/// kUnusable when there is no such file or it is another one; kRecipe for a checksum that cannot be one.
/// Of `policy`, only the times count: messages say what helps here.
void fetch_file(const std::string& remote, const std::string& path, const FileChecksum& checksum,
                const std::stop_token& stop = {}, DownloadPolicy policy = {});

}  // namespace tycho
