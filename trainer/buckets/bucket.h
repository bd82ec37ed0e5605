// Stores of objects that a run writes to and reads from: what every kind of store can do, by one interface.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace tycho {

/// One object of a listing.
struct StoredObject {
  std::string name;  // below the bucket's place, "step-1/rank-00000.safetensors"
  int64_t num_bytes = 0;
  std::string version;    // changes when the object is written again: an ETag; "" when the store has none
  double modified_s = 0;  // seconds since 1970, by the store's clock
};

/// kAbsent writes only if no object has the name; of several writers at once, one succeeds.
enum class PutWhen { kAlways, kAbsent };

/// How a file is uploaded.
struct UploadOptions {
  int64_t part_bytes =
      int64_t{16} << 20;    // size of a part; larger files get larger parts, by the store's limits
  int num_connections = 4;  // parts under way at a time, each in memory
  /// Receives the number of bytes stored since the last call, parts of an earlier upload included. Called
  /// from any thread, one call at a time.
  std::function<void(int64_t)> progress;
};

/// Tries and waits of each request. A request that stays without an answer counts as failed.
struct RequestTries {
  int64_t retries = 6;      // number of tries after the first
  double stall_s = 60;      // longest time without a byte
  double first_wait_s = 1;  // wait before the first retry; doubles with each retry
  double longest_wait_s = 30;
};

/// Objects below a place, such as a prefix of a bucket. All functions may be called from any thread. They
/// retry what may pass, and throw Error: kUnusable when the store refuses (no such bucket, credentials, a
/// name that cannot be), kStorage when it does not answer after all tries or cannot store, kTerminated on a
/// stop. Names have parts joined with "/"; no part is "", "." or "..", and no name
/// is another's beginning up to a "/", which a folder cannot hold.
class Bucket {
 public:
  virtual ~Bucket() = default;
  /// Returns the place of an object for messages, without secrets: "s3://bucket/runs/a/COMMIT".
  virtual std::string place_of(const std::string& name) const = 0;
  /// Writes an object. Returns false if kAbsent finds one; then nothing has changed. Bytes that no other
  /// writer has (a random id) make a retry whose first try was stored without an answer return true.
  virtual bool put(const std::string& name, const std::string& bytes, PutWhen when,
                   const std::stop_token& stop = {}) = 0;
  /// Uploads a file of `num_bytes`, in parts with checksums where it is long. Continues an unfinished upload
  /// to this name: parts that equal the file's are kept. The object exists when this returns, not before.
  /// Throws Error (kUnusable) when the file has another size.
  virtual void put_file(const std::string& name, const std::string& path, int64_t num_bytes,
                        const UploadOptions& options, const std::stop_token& stop = {}) = 0;
  /// Returns a whole object; nullopt when it does not exist. Throws Error (kUnusable) when it is longer than
  /// `most_bytes`.
  virtual std::optional<std::string> get(const std::string& name, int64_t most_bytes,
                                         const std::stop_token& stop = {}) = 0;
  /// Fills `out` with bytes from `offset` on. Throws Error (kUnusable) when the object does not exist or
  /// ends before.
  virtual void read(const std::string& name, int64_t offset, std::span<char> out,
                    const std::stop_token& stop = {}) = 0;
  /// Returns the objects whose names begin with `prefix`, sorted by name: "a" finds "a", "ab" and "a/b".
  virtual std::vector<StoredObject> list(const std::string& prefix, const std::stop_token& stop = {}) = 0;
  /// Removes objects. Names that do not exist are fine.
  virtual void remove(const std::vector<std::string>& names, const std::stop_token& stop = {}) = 0;
  /// Removes unfinished uploads to names that begin with `prefix` and that are older than `older_than_s`, by
  /// the store's clock. Returns their number.
  virtual int abort_unfinished(const std::string& prefix, double older_than_s,
                               const std::stop_token& stop = {}) = 0;
};

/// Checks the name of an object. Throws Error (kUnusable) that names `place`.
void check_object_name(const std::string& name, const std::string& place);

}  // namespace tycho
