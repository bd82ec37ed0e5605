// Importance of keys: found where it was put, also in words and in pairs of keys, and nowhere else.
#include "trainer/sweep/importance.h"

#include <cmath>
#include <functional>

#include "tests/trainer/sweep/sweep_fixture.h"

namespace tycho {
namespace {

class ImportanceTest : public SweepBoardTest {
 protected:
  /// Trials with keys a, b, c (numbers 0 to 6) and word (x, y, z), in an order without a pattern; `metric`
  /// gives the value of each.
  SweepImportance importance(int count, const std::function<double(int a, int b, int c, int word)>& metric) {
    SweepDefinition definition = define(count);
    std::vector<double> values;
    for (int i = 0; i < count; ++i) {
      const int a = i * 5 % 7, b = i * 11 / 7 % 7, c = i * i * 3 / 5 % 7, word = i * 7 / 4 % 3;
      definition.trials[static_cast<size_t>(i)].values = {
          {"a", std::to_string(a)},
          {"b", std::to_string(b)},
          {"c", std::to_string(c)},
          {"word", std::string(1, static_cast<char>('x' + word))}};
      values.push_back(metric(a, b, c, word));
    }
    SweepFolder f = folder(definition);
    for (int i = 0; i < count; ++i)
      do_trial(f, "a" + std::to_string(i + 1), TrialState::kFinished, values[static_cast<size_t>(i)]);
    return importance_of(f.board());
  }
  static double share(const SweepImportance& all, const std::string& key) {
    for (const KeyImportance& one : all.keys)
      if (one.key == key) return one.share;
    return -1;
  }
};

TEST_F(ImportanceTest, OneKeyThatDecidesHasItAll) {
  const SweepImportance all = importance(140, [](int a, int, int, int) { return std::exp(-a); });
  ASSERT_EQ(all.keys.size(), 4u);
  EXPECT_EQ(all.keys[0].key, "a");
  EXPECT_GT(all.keys[0].share, 0.95);
  EXPECT_GT(all.explained, 0.9);
  EXPECT_NEAR(all.keys[0].correlation.value(), -1, 1e-9);
}

TEST_F(ImportanceTest, LargerEffectsAreMoreImportant) {
  const SweepImportance all = importance(140, [](int a, int b, int, int word) {
    return 10.0 * (a - 3) * (a - 3) + 12 * b + (word == 1 ? 1 : 0);
  });
  EXPECT_GT(share(all, "a"), 0.1);
  EXPECT_GT(share(all, "b"), 0.1);
  EXPECT_LT(share(all, "c"), 0.05);
  EXPECT_GT(share(all, "b"), share(all, "word"));
}

TEST_F(ImportanceTest, WordsAndPairsOfKeysCount) {
  const SweepImportance words = importance(140, [](int, int, int, int word) { return word == 1 ? 0 : 1; });
  EXPECT_EQ(words.keys[0].key, "word");
  EXPECT_FALSE(words.keys[0].correlation.has_value());
  const SweepImportance pair =
      importance(140, [](int a, int b, int, int) { return (a < 3) == (b < 3) ? 0.0 : 1.0; });
  EXPECT_GT(share(pair, "a") + share(pair, "b"), 0.8);
}

TEST_F(ImportanceTest, TheWorstTrialCountsAsLastAndNoMore) {
  const SweepImportance all =
      importance(140, [](int a, int b, int, int) { return b == 6 && a == 0 ? NAN : a; });
  EXPECT_EQ(all.keys[0].key, "a");
}

TEST_F(ImportanceTest, FewOrEqualTrialsHaveNone) {
  EXPECT_TRUE(importance(9, [](int a, int, int, int) { return a; }).keys.empty());
  EXPECT_TRUE(importance(40, [](int, int, int, int) { return 1.0; }).keys.empty());
}

}  // namespace
}  // namespace tycho
