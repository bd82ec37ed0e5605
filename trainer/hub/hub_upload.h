// Large files on their way to the hub's store: git LFS, as the hub and huggingface_hub speak it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/hub/hub_client.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

/// One file of this machine to send.
struct HubUpload {
  std::string path;  // inside the repository
  std::string file;  // on this machine
  int64_t num_bytes = 0;
  std::string hash;  // SHA-256 of a large file, git's SHA-1 of another
  bool is_large = false;
};

/// Number of files that one call asks about, at most: huggingface_hub's.
inline constexpr size_t kHubBatchFiles = 256;
/// Number of files that are read or sent at the same time.
inline constexpr size_t kHubUploadThreads = 4;

/// Sends the large ones of `files` that the store does not have, in one piece or in parts as the hub says,
/// and asks the hub whether they arrived. Addresses that expire are asked for again. Parts that arrived are
/// noted beside the cache's locks, for its owner alone, so that the next call sends only the
/// others, also after a kill. Returns the bytes sent.
/// Throws Error like HubClient.
int64_t send_large_files(const HubClient& client, const HubName& to, const std::vector<HubUpload>& files);

}  // namespace tycho
