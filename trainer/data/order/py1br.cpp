// Blocks at the front of a node may overlap; ids are returned once no later block shuffles them again.
#include "trainer/data/order/py1br.h"

#include <algorithm>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/shuffle_series.h"

namespace tycho {
namespace {

struct Block {
  int64_t begin = 0, end = 0;  // positions in the node
};

int64_t size_of(const NodeSpans& spans) {
  int64_t size = 0;
  for (const IdSpan& span : spans) size += static_cast<int64_t>(span.size());
  return size;
}

std::vector<uint32_t> sizes_of(const std::vector<Block>& blocks) {
  std::vector<uint32_t> sizes;
  for (const Block& block : blocks) sizes.push_back(static_cast<uint32_t>(block.end - block.begin));
  return sizes;
}

class BlockStream final : public ChunkedStream {
 public:
  BlockStream(NodeSpans spans, std::vector<Block> blocks, const NumpyRng& rng, MarkBook& book)
      : spans_(std::move(spans)),
        blocks_(std::move(blocks)),
        size_(size_of(spans_)),
        shuffles_(sizes_of(blocks_), rng, book) {
    for (size_t i = 0; i < blocks_.size(); ++i)
      longest_ =
          std::max(longest_, static_cast<size_t>(std::max(blocks_[i].end, end_of(i)) - blocks_[i].begin));
  }
  /// Returns the generator after all shuffles.
  NumpyRng rng_after() { return shuffles_.after(); }

 protected:
  size_t next_size() const override {
    const bool alone = left_ == 0 && end_of(at_) == blocks_[at_].end;
    return alone ? static_cast<size_t>(blocks_[at_].end - blocks_[at_].begin) : 0;
  }

  size_t make(IdChunk& chunk) override {
    size_t done = 0;
    while (done == 0) {
      const Block block = blocks_[at_];
      const int64_t end = end_of(at_++);
      const auto size = static_cast<size_t>(block.end - block.begin);
      fill(chunk, size);
      shuffles_.shuffle(std::span(chunk).first(size));
      done = static_cast<size_t>(end - block.begin);
      fill(chunk, done);  // a tail that no block reaches is not shuffled
    }
    left_ = chunk.size() - done;
    return done;
  }

  void pass() override {
    take(next_size(), nullptr);
    ++at_;
    shuffles_.pass();
  }

 private:
  /// Returns the position after which no block later than `block` shuffles.
  int64_t end_of(size_t block) const { return block + 1 < blocks_.size() ? blocks_[block + 1].begin : size_; }

  /// Extends the chunk, which begins where the block does, to at least `size` ids.
  void fill(IdChunk& chunk, size_t size) {
    const size_t had = chunk.size();
    if (size <= had) return;
    chunk.reserve(longest_);  // memory is used only for what is written
    chunk.resize(size);
    take(size - had, chunk.data() + had);
  }

  /// Takes the next ids of the spans; skips them if `ids` is nullptr.
  void take(size_t count, uint32_t* ids) {
    while (count > 0) {
      IdSpan& span = spans_[span_];
      const size_t here = std::min(count, span.size());
      if (ids != nullptr) {
        count_up({ids, here}, span.begin);
        ids += here;
      }
      span.begin += static_cast<uint32_t>(here);
      span_ += span.size() == 0;
      count -= here;
    }
  }

  NodeSpans spans_;  // ids of the spans that are not taken yet
  size_t span_ = 0;
  std::vector<Block> blocks_;
  size_t at_ = 0, longest_ = 0;
  size_t left_ = 0;  // ids in the chunk that a later block shuffles again
  int64_t size_;
  ShuffleSeries shuffles_;
};

std::vector<Block> draw_blocks(int64_t size, int64_t stagger, int64_t block_size, NumpyRng& rng) {
  const auto least = static_cast<int64_t>(0.75 * static_cast<double>(block_size));
  const auto most = static_cast<int64_t>(1.25 * static_cast<double>(block_size));
  std::vector<Block> blocks;
  for (int64_t end = 0; end < size;) {
    const int64_t length = rng.integers(least, most);
    const Block block = {std::max<int64_t>(end - stagger, 0), std::min(end + length - stagger, size)};
    blocks.push_back(block);
    end += block.end - block.begin;
  }
  return blocks;
}

}  // namespace

std::vector<std::unique_ptr<IdStream>> py1br_nodes(std::span<const uint32_t> unit_sizes,
                                                   const Shuffle& shuffle, MarkBook& book) {
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  auto nodes = shuffled_node_spans(unit_sizes, shuffle.num_canonical_nodes, shuffle.seed, rng);
  std::vector<int64_t> staggers;
  for (size_t i = 0; i < nodes.size(); ++i)
    staggers.push_back(rng.integers(0, static_cast<int64_t>(0.75 * static_cast<double>(shuffle.block_size))));
  std::vector<std::unique_ptr<IdStream>> streams;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<Block> blocks = draw_blocks(size_of(nodes[i]), staggers[i], shuffle.block_size, rng);
    auto stream = std::make_unique<BlockStream>(std::move(nodes[i]), std::move(blocks), rng, book);
    if (i + 1 < nodes.size()) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace tycho
