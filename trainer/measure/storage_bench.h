// Measures how fast files like checkpoints and data sets are written to and read from a folder. Torch-free.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/measure/storage_facts.h"

namespace tycho {

struct StorageBenchRequest {
  std::string folder;
  int64_t file_bytes = int64_t{256} << 20;
  int num_files = 4;  // written or read at once, like by the ranks of a machine
};

struct StorageRate {
  std::string what;       // "write 4 files at once"
  int64_t num_bytes = 0;  // of all files
  double seconds = 0;
  double bytes_per_s() const { return seconds > 0 ? static_cast<double>(num_bytes) / seconds : 0; }
};

struct StorageReport {
  std::string folder, file_system, advice;
  int64_t free_bytes = -1;  // -1: unknown
  std::vector<StorageFact> facts;
  std::vector<StorageRate> rates;
  double fsync_s = 0;      // for 4 KiB; the median of 20
  double files_per_s = 0;  // small files, created, written and closed
};

/// Measures in a new folder inside request.folder and removes it. Times of writes include making them
/// durable, and reads begin with files that the page cache has dropped, if the file system allows it. Throws
/// Error: kUsage for no file or no byte, kUnusable when the folder does not exist, kStorage when it cannot be
/// written or has too little space, and 128 + signal when `stop` holds one.
StorageReport bench_storage(const StorageBenchRequest& request, const std::atomic<int>& stop);

}  // namespace tycho
