// Code shared by all streams of ids, and the two simple streams.
#include "trainer/data/order/id_stream.h"

#include <algorithm>
#include <utility>

namespace tycho {
namespace {

class CountingStream final : public IdStream {
 public:
  explicit CountingStream(uint32_t begin) : next_(begin) {}
  void skip(int64_t count) override { next_ += static_cast<uint32_t>(count); }
  void read(std::span<uint32_t> ids) override {
    count_up(ids, next_);
    next_ += static_cast<uint32_t>(ids.size());
  }

 private:
  uint32_t next_;
};

class ListStream final : public IdStream {
 public:
  ListStream(std::shared_ptr<const IdChunk> list, size_t begin) : list_(std::move(list)), at_(begin) {}
  void skip(int64_t count) override { at_ += static_cast<size_t>(count); }
  void read(std::span<uint32_t> ids) override {
    std::copy_n(list_->begin() + static_cast<int64_t>(at_), ids.size(), ids.begin());
    at_ += ids.size();
  }

 private:
  std::shared_ptr<const IdChunk> list_;
  size_t at_;
};

}  // namespace

// Writes eight at a time, which compilers vectorise; they keep std::iota's loop scalar.
void count_up(std::span<uint32_t> ids, uint32_t first) {
  size_t at = 0;
  for (; at + 8 <= ids.size(); at += 8)
    for (uint32_t i = 0; i < 8; ++i) ids[at + i] = first + static_cast<uint32_t>(at) + i;
  for (; at < ids.size(); ++at) ids[at] = first + static_cast<uint32_t>(at);
}

void ChunkedStream::make_next() {
  chunk_.erase(chunk_.begin(), chunk_.begin() + static_cast<int64_t>(done_));
  done_ = make(chunk_);
  at_ = 0;
}

void ChunkedStream::skip(int64_t count) {
  const auto here = std::min<int64_t>(count, static_cast<int64_t>(done_ - at_));
  at_ += static_cast<size_t>(here);
  count -= here;
  if (count > 0) count -= leap(count);
  while (count > 0) {
    const auto size = static_cast<int64_t>(next_size());
    if (size > 0 && size <= count) {
      pass();
      count -= size;
      continue;
    }
    make_next();
    at_ = static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(done_)));
    count -= static_cast<int64_t>(at_);
  }
}

void ChunkedStream::read(std::span<uint32_t> ids) {
  while (!ids.empty()) {
    if (at_ == done_) make_next();
    const size_t count = std::min(ids.size(), done_ - at_);
    std::copy_n(chunk_.begin() + static_cast<int64_t>(at_), count, ids.begin());
    at_ += count;
    ids = ids.subspan(count);
  }
}

std::unique_ptr<IdStream> make_counting_stream(uint32_t begin) {
  return std::make_unique<CountingStream>(begin);
}

std::unique_ptr<IdStream> make_list_stream(std::shared_ptr<const IdChunk> list, size_t begin) {
  return std::make_unique<ListStream>(std::move(list), begin);
}

}  // namespace tycho
