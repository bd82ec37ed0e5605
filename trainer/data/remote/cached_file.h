// One remote file, fetched to this machine.
#pragma once
#include <stop_token>
#include <string>

namespace tycho {

/// Fetches `remote`, a place as parse_remote reads with the name of a file behind it, to `path`, unless that
/// is there. `hash`: "sha256:HEX" or another of shard_hash_names(), which the file must have, also one that
/// is there already; "": whatever the remote has, its whole length. The file gets its name when it is whole;
/// processes that want it at once fetch it once. Throws Error: as download() and PartFile do; kUnusable when
/// there is no such file or it is another one.
void fetch_file(const std::string& remote, const std::string& path, const std::string& hash,
                const std::stop_token& stop = {});

}  // namespace tycho
