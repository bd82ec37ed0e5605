// A store that a process loses in the middle: the n-th operation, and every one after it, fails.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/buckets/bucket.h"

namespace tycho {

/// Dies at operation `at` (from 1; 0: never), before it has an effect, or after it when `late`: a store that
/// stores and does not answer.
class DyingBucket final : public Bucket {
 public:
  explicit DyingBucket(std::unique_ptr<Bucket> store, int at = 0, bool late = false)
      : store_(std::move(store)), at_(at), late_(late) {}
  int calls() const { return calls_; }
  int64_t bytes_read() const { return bytes_read_; }
  void die_at(int at) { at_ = at; }

  std::string place_of(const std::string& name) const override { return store_->place_of(name); }
  bool put(const std::string& name, const std::string& bytes, PutWhen when,
           const std::stop_token& stop) override {
    return live([&] { return store_->put(name, bytes, when, stop); });
  }
  void put_file(const std::string& name, const std::string& path, int64_t num_bytes,
                const UploadOptions& options, const std::stop_token& stop) override {
    live([&] { return store_->put_file(name, path, num_bytes, options, stop), true; });
  }
  std::optional<std::string> get(const std::string& name, int64_t most_bytes,
                                 const std::stop_token& stop) override {
    return live([&] { return store_->get(name, most_bytes, stop); });
  }
  void read(const std::string& name, int64_t offset, std::span<char> out,
            const std::stop_token& stop) override {
    bytes_read_ += static_cast<int64_t>(out.size());
    live([&] { return store_->read(name, offset, out, stop), true; });
  }
  std::vector<StoredObject> list(const std::string& prefix, const std::stop_token& stop) override {
    return live([&] { return store_->list(prefix, stop); });
  }
  void remove(const std::vector<std::string>& names, const std::stop_token& stop) override {
    for (const std::string& name : names) live([&] { return store_->remove({name}, stop), true; });
  }
  int abort_unfinished(const std::string& prefix, double older_than_s, const std::stop_token& stop) override {
    return live([&] { return store_->abort_unfinished(prefix, older_than_s, stop); });
  }

 private:
  template <class Act>
  std::invoke_result_t<Act> live(const Act& act) {
    const int call = ++calls_, at = at_;
    const bool dies = at > 0 && call >= at;
    if (dies && !(late_ && call == at)) fail(ExitCode::kStorage, "[bucket] the store does not answer");
    auto result = act();
    if (dies) fail(ExitCode::kStorage, "[bucket] the store does not answer");
    return result;
  }

  const std::unique_ptr<Bucket> store_;
  std::atomic<int> at_, calls_ = 0;
  std::atomic<int64_t> bytes_read_ = 0;
  const bool late_;
};

}  // namespace tycho
