// Streams of ids in an order that is made while it is read, so that an epoch of any size takes little memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/base/huge_pages.h"

namespace tycho {

/// Many ids. Elements added by resize() are uninitialized.
using IdChunk = std::vector<uint32_t, HugePages<uint32_t>>;

/// Writes first, first + 1, …
void count_up(std::span<uint32_t> ids, uint32_t first);

/// Reads ids front to back. Owned by one thread. Requires that callers never ask for more ids than there are.
class IdStream {
 public:
  virtual ~IdStream() = default;
  virtual void skip(int64_t count) = 0;
  virtual void read(std::span<uint32_t> ids) = 0;
};

/// Stream of ids that are made in chunks.
class ChunkedStream : public IdStream {
 public:
  void skip(int64_t count) final;
  void read(std::span<uint32_t> ids) final;

 protected:
  /// Returns the size of the next chunk, at least 1; 0 when it is not known before the chunk is made.
  virtual size_t next_size() const = 0;
  /// Appends to the ids that the last call left in `chunk`. Returns the number of final ids at its front, at
  /// least 1. The others stay in `chunk` for the next call.
  virtual size_t make(IdChunk& chunk) = 0;
  /// Advances like make(), without making ids. Not called when next_size() is 0.
  virtual void pass() = 0;
  /// Skips ahead by at most `count` ids, where that is quicker than chunk by chunk. Returns the number of
  /// skipped ids.
  virtual int64_t leap(int64_t /*count*/) { return 0; }

 private:
  void make_next();

  IdChunk chunk_;
  size_t at_ = 0, done_ = 0;  // positions in the chunk
};

/// Streams begin, begin + 1, …
std::unique_ptr<IdStream> make_counting_stream(uint32_t begin);
/// Streams part of a list that several streams share, starting at `begin`.
std::unique_ptr<IdStream> make_list_stream(std::shared_ptr<const IdChunk> list, size_t begin);

}  // namespace tycho
