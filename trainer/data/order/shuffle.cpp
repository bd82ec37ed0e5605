// Chooses the shuffle. naive and py1s are in this file, the others in their own files.
#include "trainer/data/order/shuffle.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/hash.h"
#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/py1br.h"
#include "trainer/data/order/py1e.h"
#include "trainer/data/order/py2s.h"
#include "trainer/data/order/shuffle_series.h"
#include "trainer/data/order/torch_permutation.h"

namespace tycho {
namespace {

/// py1s: spans one after the other, each shuffled.
class SpanStream final : public ChunkedStream {
 public:
  SpanStream(NodeSpans spans, const NumpyRng& rng, MarkBook& book)
      : spans_(std::move(spans)), shuffles_(sizes_of(spans_), rng, book) {}
  /// Returns the generator after all shuffles.
  NumpyRng rng_after() { return shuffles_.after(); }

 protected:
  size_t next_size() const override { return spans_[at_].size(); }
  size_t make(IdChunk& chunk) override {
    const IdSpan span = spans_[at_++];
    chunk.resize(span.size());
    count_up(chunk, span.begin);
    shuffles_.shuffle(std::span(chunk));
    return chunk.size();
  }
  void pass() override {
    ++at_;
    shuffles_.pass();
  }

 private:
  NodeSpans spans_;
  ShuffleSeries shuffles_;
  size_t at_ = 0;
};

std::vector<std::unique_ptr<IdStream>> py1s_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle, MarkBook& book) {
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  std::vector<std::unique_ptr<IdStream>> streams;
  auto nodes = shuffled_node_spans(unit_sizes, shuffle.num_canonical_nodes, shuffle.seed, rng);
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto stream = std::make_unique<SpanStream>(std::move(nodes[i]), rng, book);
    if (i + 1 < nodes.size()) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

/// naive: one list, shuffled as a whole.
std::vector<std::unique_ptr<IdStream>> list_nodes(int64_t num_ids, const Shuffle& shuffle) {
  auto list = std::make_shared<IdChunk>(static_cast<size_t>(num_ids));
  const uint64_t seed = shuffle.seed + static_cast<uint64_t>(shuffle.epoch);
  if (shuffle.as_torch) {
    torch_permutation(std::span(*list), seed);
  } else {
    count_up(*list, 0);
    NumpyRng(seed).shuffle(std::span(*list));
  }
  std::vector<std::unique_ptr<IdStream>> streams;
  for (int64_t node = 0; node < shuffle.num_canonical_nodes; ++node)
    streams.push_back(
        make_list_stream(list, static_cast<size_t>(num_ids * node / shuffle.num_canonical_nodes)));
  return streams;
}

int64_t sum_of(std::span<const uint32_t> unit_sizes) {
  return std::accumulate(unit_sizes.begin(), unit_sizes.end(), int64_t{0});
}

/// Returns the hash of everything that marks depend on. Its first number is a version of their meaning.
std::string hash_of_shuffle(std::span<const uint32_t> unit_sizes, const Shuffle& shuffle) {
  const std::string text =
      fmt::format("1 {} {} {} {} {} {} {}", enum_name(shuffle.algo), shuffle.num_canonical_nodes,
                  shuffle.seed, shuffle.epoch, shuffle.block_size, shuffle.between_marks, unit_sizes.size());
  Hasher hasher;
  hasher.update(text.data(), text.size());
  hasher.update(unit_sizes.data(), unit_sizes.size_bytes());
  return hasher.hex();
}

/// Returns the hash under which words are kept. It covers the words too, so that damaged words match no
/// shuffle.
std::string marks_key(const std::string& hash_of_shuffle, const std::vector<uint64_t>& words) {
  Hasher hasher;
  hasher.update(hash_of_shuffle.data(), hash_of_shuffle.size());
  hasher.update(words.data(), words.size() * sizeof(uint64_t));
  return hasher.hex();
}

/// Returns the marks of this shuffle, or known.end().
OrderMarks::const_iterator find_marks(const OrderMarks& known, std::span<const uint32_t> unit_sizes,
                                      const Shuffle& shuffle) {
  if (known.empty()) return known.end();
  const std::string hash = hash_of_shuffle(unit_sizes, shuffle);
  return std::find_if(known.begin(), known.end(),
                      [&](const auto& one) { return one.first == marks_key(hash, one.second); });
}

std::vector<std::unique_ptr<IdStream>> make_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle, MarkBook& book) {
  switch (shuffle.algo) {
    case ShuffleAlgo::kNaive: return list_nodes(sum_of(unit_sizes), shuffle);
    case ShuffleAlgo::kPy1s: return py1s_nodes(unit_sizes, shuffle, book);
    case ShuffleAlgo::kPy2s: return py2s_nodes(unit_sizes, shuffle, book);
    case ShuffleAlgo::kPy1br: return py1br_nodes(unit_sizes, shuffle, book);
    case ShuffleAlgo::kPy1e: return py1e_nodes(unit_sizes, shuffle, book);
  }
  return {};
}

}  // namespace

std::vector<std::unique_ptr<IdStream>> shuffled_nodes(std::span<const uint32_t> unit_sizes,
                                                      const Shuffle& shuffle, const OrderMarks& known) {
  const int64_t num_ids = sum_of(unit_sizes);
  TYCHO_CHECK(num_ids < int64_t{1} << 32 && num_ids >= shuffle.num_canonical_nodes,
              "[order] {} samples cannot be shuffled over {} canonical nodes", num_ids,
              shuffle.num_canonical_nodes);
  const auto found = find_marks(known, unit_sizes, shuffle);
  const auto between = static_cast<size_t>(shuffle.between_marks);
  MarkBook book = found == known.end() ? MarkBook(MarkBook::Use::kNone, between)
                                       : MarkBook(MarkBook::Use::kRead, between, found->second);
  auto nodes = make_nodes(unit_sizes, shuffle, book);
  if (!book.at_end()) MarkBook::do_not_fit();
  return nodes;
}

OrderMarks shuffle_marks(std::span<const uint32_t> unit_sizes, const Shuffle& shuffle,
                         const OrderMarks& known) {
  if (shuffle.algo == ShuffleAlgo::kNaive || sum_of(unit_sizes) < shuffle.between_marks) return {};
  if (const auto found = find_marks(known, unit_sizes, shuffle); found != known.end()) return {*found};
  MarkBook book(MarkBook::Use::kNote, static_cast<size_t>(shuffle.between_marks));
  make_nodes(unit_sizes, shuffle, book);
  return {{marks_key(hash_of_shuffle(unit_sizes, shuffle), book.words()), book.words()}};
}

std::vector<std::unique_ptr<IdStream>> nodes_in_order(int64_t num_ids, int64_t num_canonical_nodes) {
  std::vector<std::unique_ptr<IdStream>> streams;
  for (int64_t node = 0; node < num_canonical_nodes; ++node)
    streams.push_back(make_counting_stream(static_cast<uint32_t>(num_ids * node / num_canonical_nodes)));
  return streams;
}

}  // namespace tycho
