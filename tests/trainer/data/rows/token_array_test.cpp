// Ids in both types, and numbers that only just fit.
#include "trainer/data/rows/token_array.h"

#include <gtest/gtest.h>

#include <numeric>

#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(TokenArray, TheVocabularyDecidesTheType) {
  EXPECT_TRUE(TokenArray().empty());
  EXPECT_TRUE(TokenArray(1, 3, 0).is_narrow());
  EXPECT_TRUE(TokenArray(65436, 3, 0).is_narrow());
  EXPECT_FALSE(TokenArray(65437, 3, 0).is_narrow());
  EXPECT_FALSE(TokenArray(128256, 3, 0).is_narrow());
}

TEST(TokenArray, EveryIdAndNoTargetComeBack) {
  for (const int64_t vocab_size : {65436, 65437}) {
    std::vector<int32_t> all(static_cast<size_t>(vocab_size));
    std::iota(all.begin(), all.end(), 0);
    all.push_back(kNoTarget);
    TokenArray ids(vocab_size, all.size() + 2, kNoTarget);
    ids.put(1, all);
    EXPECT_EQ(ids[0], kNoTarget);
    all.insert(all.begin(), kNoTarget);
    all.push_back(kNoTarget);
    EXPECT_EQ(ids.widened(), all);
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(ids[i], all[i]);
    ids.set(0, 65435);
    EXPECT_EQ(ids[0], 65435);
    TokenArray others(vocab_size, 3, 7);
    others.put(1, ids, 65434, 2);
    EXPECT_EQ(others.widened(), (std::vector<int32_t>{7, 65433, 65434}));
    EXPECT_EQ(others, others);
    EXPECT_NE(others, TokenArray(vocab_size, 3, 7));
  }
}

TEST(TokenArray, TwoVocabulariesDoNotMix) {
  TokenArray narrow(10, 2, 0);
  EXPECT_THROW(narrow.put(0, TokenArray(100'000, 2, 0), 0, 1), Error);
}

}  // namespace
}  // namespace tycho
