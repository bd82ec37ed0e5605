// Checks the cache's files like local ones, but fetches a damaged one again.
#include "trainer/data/mds/cached_source.h"

#include <unistd.h>

#include <algorithm>
#include <stop_token>

#include "trainer/base/error.h"
#include "trainer/data/mds/shard_cache.h"
#include "trainer/data/mds/shard_prefetch.h"

namespace tycho {
namespace {

constexpr int kFetchThreads = 4;

class CachedSource final : public ShardSource {
 public:
  CachedSource(const MdsIndex& index, VerifyShards verify, const CacheSpec& spec)
      : cache_(spec, index),
        local_(make_local_source(index, verify, ShardFiles::kMayBeReplaced)),
        max_open_(most_open(index, spec)),
        prefetch_(kFetchThreads,
                  [this](size_t shard, const std::stop_token& stop, const MayEvict& may_evict) {
                    cache_.prefetch(shard, stop, may_evict);
                  }) {}

  int open(size_t shard) override { return cache_.open(shard, stop_.get_token()); }

  void verify(size_t shard, int descriptor) override {
    prefetch_.was_read(shard);
    try {
      return local_->verify(shard, descriptor);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kUnusable) throw;
    }
    cache_.set_aside(shard, descriptor);
    const int again = cache_.open(shard, stop_.get_token());
    ::dup2(again, descriptor);  // the reader's descriptor is the new file's from here on
    ::close(again);
    local_->verify(shard, descriptor);
  }

  void prefetch(std::span<const size_t> shards) override { prefetch_.announce(shards); }
  bool prefetches() const override { return true; }

  void cancel() override {
    stop_.request_stop();
    prefetch_.stop();
  }

  FetchCounts fetch_counts() const override { return cache_.counts(); }
  int max_open() const override { return max_open_; }

 private:
  /// Returns the number of shards to keep open. Open shards cannot be evicted, so they may take an eighth of
  /// the cache at most.
  static int most_open(const MdsIndex& index, const CacheSpec& spec) {
    constexpr int kMost = 256;
    int64_t largest = 1;
    for (const MdsShard& shard : index.shards)
      largest = std::max(largest, shard.bytes + (shard.zip ? shard.zip->bytes : 0));
    if (!spec.limit_bytes) return kMost;
    return static_cast<int>(std::clamp<int64_t>(*spec.limit_bytes / (8 * largest), 1, kMost));
  }

  ShardCache cache_;
  std::unique_ptr<ShardSource> local_;
  int max_open_;
  std::stop_source stop_;
  ShardPrefetch prefetch_;  // last: its threads use the cache
};

}  // namespace

std::unique_ptr<ShardSource> make_cached_source(const MdsIndex& index, VerifyShards verify,
                                                const CacheSpec& spec) {
  return std::make_unique<CachedSource>(index, verify, spec);
}

}  // namespace tycho
