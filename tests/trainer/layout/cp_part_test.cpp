// The parts of sequences that ranks along cp have.
#include "trainer/layout/cp_part.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tycho {
namespace {

/// Work of causal attention: the keys that each of a rank's queries sees.
int64_t keys_seen(int64_t seq, const CpShape& cp) {
  int64_t sum = 0;
  for (const CpSpan& span : cp_spans(seq, cp))
    for (int64_t i = 0; i < span.count; ++i) sum += span.first + i + 1;
  return sum;
}

TEST(CpPart, GivesEveryRankTheSameWork) {
  for (const int64_t size : {1, 2, 3, 8})
    for (int64_t rank = 0; rank < size; ++rank)
      EXPECT_EQ(keys_seen(48, {size, rank}), 48 * 49 / 2 / size) << rank << " of " << size;
}

TEST(CpPart, NamesEveryTokenOfABatchOnce) {
  constexpr int64_t kSeq = 24, kTokens = 3 * kSeq;
  for (const int64_t size : {1, 2, 4})
    for (const int64_t cuts : {1, 3}) {  // of a rank's tokens, as ranks along tp have them
      std::vector<int> seen(kTokens, 0);
      for (int64_t rank = 0; rank < size; ++rank)
        for (int64_t cut = 0; cut < cuts; ++cut) {
          const int64_t count = kTokens / size / cuts;
          int64_t next = cut * count;
          for_cp_runs(kSeq, {size, rank}, cut * count, count, [&](int64_t i, int64_t j, int64_t n) {
            EXPECT_EQ(i, next);
            next += n;
            for (int64_t k = 0; k < n; ++k) ++seen[static_cast<size_t>(j + k)];
          });
          EXPECT_EQ(next, (cut + 1) * count);
        }
      EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), kTokens);
      EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), 1);
    }
}

TEST(CpPart, RunsFollowTheSpans) {
  std::vector<int64_t> first;
  for_cp_runs(8, {2, 1}, 0, 8, [&](int64_t, int64_t j, int64_t) { first.push_back(j); });
  EXPECT_EQ(first, (std::vector<int64_t>{2, 4, 10, 12}));
}

}  // namespace
}  // namespace tycho
