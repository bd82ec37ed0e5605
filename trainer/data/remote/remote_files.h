// The files of a remote data set, by name, wherever they are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "trainer/data/remote_place.h"

namespace tycho {

/// Takes the bytes of a fetch. Errors that it throws end the fetch and reach its caller.
class FetchSink {
 public:
  virtual ~FetchSink() = default;
  /// Before the first byte: where the bytes that follow belong. That is the offset that was asked for, or 0
  /// from a server that gives whole files only.
  virtual void begin(int64_t offset) = 0;
  virtual void write(const char* data, size_t num_bytes) = 0;
};

/// What is fetched of a file, and how long a silence is waited for.
struct FetchWish {
  int64_t offset = 0;
  std::string version;  // what `offset` bytes are already there of; "" when that is not known
  double timeout_s = 60;
  std::stop_token stop;
};

struct FetchOutcome {
  enum class State {
    kDone,
    kAbsent,   // there is no such file, or not for us to know (S3 says 403 to both)
    kRefused,  // trying again will not help
    kFailed,   // trying again may help
    kStopped
  };
  State state = State::kDone;
  std::string problem;  // without secrets
  std::string version;  // of the file that bytes came of: an ETag; "" when the server has none
  double wait_s = 0;    // how long the server asks to wait
};

/// From any thread.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;
  /// "https://host/data/index.json": for messages, without secrets.
  virtual std::string place_of(const std::string& name) const = 0;
  /// Hands on the bytes of a file from wish.offset to its end.
  virtual FetchOutcome fetch(const std::string& name, const FetchWish& wish, FetchSink& sink) = 0;
};

/// `sas_env`: the variable that holds the query of every URL; "" for the usual one. Throws Error (kUnusable)
/// when what the remote needs on this machine is missing.
std::unique_ptr<RemoteFiles> open_remote_files(const RemotePlace& place, const std::string& sas_env);

}  // namespace tycho
