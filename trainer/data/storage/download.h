// Fetches one file of a remote into an open file, however often the connection breaks.
#pragma once
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "trainer/data/storage/remote_files.h"

namespace tycho {

/// Retries and waits of a download, and the advice in its messages.
struct DownloadPolicy {
  int64_t retries = 6;      // number of tries after the first
  double timeout_s = 60;    // longest time without a byte
  double first_wait_s = 1;  // wait before the first retry; doubles with each retry
  const char* when_full = "free room on that disk, set cache_limit, or choose another local_dir";
  const char* when_no_answer = "download_retry and download_timeout_s say how long is waited";
};

struct DownloadTarget {
  int descriptor = -1;     // for writing
  std::string path;        // path of the descriptor's file, for messages
  int64_t num_bytes = 0;   // bytes already in the file; fetched bytes follow them
  int64_t most_bytes = 0;  // a longer file is an Error
  const char* who_says = "that index.json gives it; is it of another version of the data?";
};

/// Receives the number of bytes added since the last call, negative where bytes are fetched again. Called
/// from the thread that downloads.
using DownloadProgress = std::function<void(int64_t)>;

/// Downloads a file, waiting between tries with exponential back-off and jitter, and continuing after the
/// bytes that have come. Returns false when there is no such file. Throws Error: kUnusable naming the URL
/// (without secrets) and what to do, kStorage when the target cannot be written, kTerminated when `stop` was
/// requested. Keeps target.num_bytes up to date.
bool download(RemoteFiles& files, const std::string& name, DownloadTarget& target,
              const DownloadPolicy& policy, const std::stop_token& stop,
              const DownloadProgress& progress = {});

}  // namespace tycho
