// Reads the files of a remote data set by name, for all kinds of remotes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>

namespace tycho {

/// Receives the bytes of a fetch. Errors that it throws end the fetch and reach its caller.
class FetchSink {
 public:
  virtual ~FetchSink() = default;
  /// Called before the first byte with the offset of the bytes that follow: the requested one, or 0 from a
  /// server that gives whole files only.
  virtual void begin(int64_t offset) = 0;
  virtual void write(const char* data, size_t num_bytes) = 0;
};

/// A fetch: which bytes of a file, and how long to wait for a silent server.
struct FetchOptions {
  int64_t offset = 0;
  std::string version;  // version of the first `offset` bytes; "" when it is not known
  double timeout_s = 60;
  std::stop_token stop;
};

struct FetchOutcome {
  enum class State {
    kDone,
    kAbsent,   // no such file, or we may not know (S3 says 403 to both)
    kRefused,  // trying again will not help
    kFailed,   // trying again may help
    kStopped
  };
  State state = State::kDone;
  std::string problem;  // without secrets
  std::string version;  // version of the fetched file: an ETag; "" when the server has none
  double wait_s = 0;    // wait that the server asks for
};

/// Files of a remote. From any thread.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;
  /// Name of a file for messages, without secrets: "https://host/data/index.json".
  virtual std::string place_of(const std::string& name) const = 0;
  /// Passes the bytes of a file from options.offset to its end to `sink`.
  virtual FetchOutcome fetch(const std::string& name, const FetchOptions& options, FetchSink& sink) = 0;
};

}  // namespace tycho
