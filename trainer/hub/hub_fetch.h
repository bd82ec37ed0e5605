// Fetches one file of the hub: in pieces, several at a time, continued after a kill, verified before it
// appears.
#pragma once
#include <mutex>
#include <stop_token>
#include <string>

#include "trainer/hub/hub_cache.h"
#include "trainer/hub/hub_client.h"
#include "trainer/hub/hub_files.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

/// Number of bytes of one request.
inline constexpr int64_t kHubPieceBytes = int64_t{8} << 20;
/// Files above this number of bytes have no plain download on the hub.
inline constexpr int64_t kMostHubBytes = 50'000'000'000;

/// Fetches pieces of one file; asks again where the file is when a signed address has expired. From any
/// thread.
class HubPieces {
 public:
  HubPieces(const HubClient& client, HubName at_commit, HubFile file);
  /// Returns the bytes [begin, end). Throws like HubClient.
  std::string read(int64_t begin, int64_t end);

 private:
  HubAddress address(int renewal);
  const HubClient& client_;
  HubName name_;
  HubFile file_;
  std::mutex mutex_;
  HubAddress address_;
  int64_t num_read_ = 0;  // pieces that have come
  int num_located_ = 0;   // 0: the file has not been located
};

/// Puts a file into the cache and returns its path in the snapshot. One process on this machine downloads it
/// while others wait. Throws Error: see hub_file().
std::string fetch_to_cache(const HubClient& client, const HubCache& cache, const HubName& at_commit,
                           const HubFile& file, const std::stop_token& stop);

}  // namespace tycho
