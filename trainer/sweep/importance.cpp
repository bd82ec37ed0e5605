// Grows a random forest over the values of keys (Breiman 2001), and permutes them.
#include "trainer/sweep/importance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <random>

#include "trainer/sweep/search.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

constexpr int kNumTrees = 100, kMostDepth = 12;
constexpr size_t kFewestInLeaf = 3;

/// Trials as numbers: a row for each key. Words are numbered in the order of their names, and split one from
/// all others.
struct Features {
  std::vector<std::string> keys;
  std::vector<bool> are_words;
  std::vector<std::vector<double>> values;  // [key][trial]; NaN for a trial without the key
  std::vector<double> target;               // [trial]: rank of its metric, from 0 (best) to 1
};

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  return whole ? std::optional(value) : std::nullopt;
}

/// Returns ranks from 0 to 1; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k)
      ranks[order[k]] =
          static_cast<double>(i + end - 1) / 2 / std::max<double>(1, static_cast<double>(values.size()) - 1);
    i = end;
  }
  return ranks;
}

std::vector<double> column_of(const std::vector<const Trial*>& trials, const std::string& key,
                              bool& are_words) {
  std::vector<std::string> words;
  are_words = false;
  for (const Trial* trial : trials)
    if (const auto found = trial->plan.values.find(key); found != trial->plan.values.end()) {
      words.push_back(found->second);
      are_words |= !number_of(found->second);
    }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<double> column;
  for (const Trial* trial : trials) {
    const auto found = trial->plan.values.find(key);
    if (found == trial->plan.values.end())
      column.push_back(NAN);
    else
      column.push_back(are_words
                           ? static_cast<double>(std::lower_bound(words.begin(), words.end(), found->second) -
                                                 words.begin())
                           : *number_of(found->second));
  }
  return column;
}

Features features_of(const Board& board) {
  std::vector<const Trial*> trials;
  std::vector<double> metric;
  const double sign = board.definition().config.metric.goal == Goal::kMin ? 1 : -1;
  for (const Trial& trial : board.trials()) {
    if (!trial.finalist.empty() || !trial.has_value()) continue;
    trials.push_back(&trial);
    metric.push_back(std::isfinite(*trial.last.value) ? sign * *trial.last.value : INFINITY);
  }
  Features features;
  features.target = ranks_of(metric);
  for (const std::string& key : space_keys(board)) {
    bool are_words = false;
    const std::vector<double> column = column_of(trials, key, are_words);
    if (std::all_of(column.begin(), column.end(), [&](double x) { return x == column.front(); })) continue;
    features.keys.push_back(key), features.are_words.push_back(are_words), features.values.push_back(column);
  }
  return features;
}

/// A node of a tree: a leaf when `key` is negative.
struct Node {
  int key = -1;
  bool is_word = false;
  double at = 0, mean = 0;
  size_t low = 0, high = 0;  // where trials below `at` (or equal to the word `at`) go, and where others do
};

class Tree {
 public:
  Tree(const Features& features, std::vector<size_t> trials) : features_(features) { grow(trials, 0); }

  /// Predicts a trial whose value of `key` is replaced by that of `donor`.
  double predict(size_t trial, int key, size_t donor) const {
    size_t at = 0;
    while (nodes_[at].key >= 0) {
      const Node& node = nodes_[at];
      const double x = features_.values[static_cast<size_t>(node.key)][node.key == key ? donor : trial];
      at = goes_low(node, x) ? node.low : node.high;
    }
    return nodes_[at].mean;
  }

 private:
  static bool goes_low(const Node& node, double x) { return node.is_word ? x == node.at : x <= node.at; }

  size_t grow(const std::vector<size_t>& trials, int depth) {
    const size_t index = nodes_.size();
    Node node;
    for (const size_t trial : trials)
      node.mean += features_.target[trial] / static_cast<double>(trials.size());
    nodes_.push_back(node);
    if (depth == kMostDepth || trials.size() < 2 * kFewestInLeaf || !split(trials, node)) return index;
    std::vector<size_t> low, high;
    for (const size_t trial : trials)
      (goes_low(node, features_.values[static_cast<size_t>(node.key)][trial]) ? low : high).push_back(trial);
    node.low = grow(low, depth + 1);
    node.high = grow(high, depth + 1);
    nodes_[index] = node;
    return index;
  }

  /// Finds the split with the least squared error; false when none leaves enough on both sides.
  bool split(const std::vector<size_t>& trials, Node& node) const {
    double best = -1;
    for (size_t key = 0; key < features_.keys.size(); ++key) {
      std::vector<double> places;
      for (const size_t trial : trials)
        if (!std::isnan(features_.values[key][trial])) places.push_back(features_.values[key][trial]);
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      for (const double at : places) {
        const Node tried = {static_cast<int>(key), features_.are_words[key], at, node.mean};
        double sums[2] = {0, 0}, nums[2] = {0, 0};
        for (const size_t trial : trials) {
          const int side = goes_low(tried, features_.values[key][trial]) ? 0 : 1;
          sums[side] += features_.target[trial] - node.mean, ++nums[side];
        }
        if (std::min(nums[0], nums[1]) < static_cast<double>(kFewestInLeaf)) continue;
        const double gain = sums[0] * sums[0] / nums[0] + sums[1] * sums[1] / nums[1];
        if (gain > best + 1e-12) best = gain, node = tried;
      }
    }
    return best > 1e-12;
  }

  const Features& features_;
  std::vector<Node> nodes_;
};

/// Returns Spearman's correlation of a key's numbers with the metric itself.
std::optional<double> correlation_of(const Features& features, size_t key, double sign) {
  if (features.are_words[key]) return std::nullopt;
  std::vector<double> x, y;
  for (size_t i = 0; i < features.target.size(); ++i)
    if (!std::isnan(features.values[key][i]))
      x.push_back(features.values[key][i]), y.push_back(features.target[i]);
  x = ranks_of(x), y = ranks_of(y);
  double xy = 0, xx = 0, yy = 0;
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    xy += (x[i] - mean) * (y[i] - mean), xx += (x[i] - mean) * (x[i] - mean),
        yy += (y[i] - mean) * (y[i] - mean);
  if (!(xx > 0 && yy > 0)) return std::nullopt;
  return sign * xy / std::sqrt(xx * yy);
}

/// Squared errors of trials that trees were not grown from, in total: as they are, and with each key
/// exchanged.
struct Errors {
  double plain = 0, variance = 0;
  std::vector<double> exchanged;
};

Errors errors_of(const Features& features) {
  Errors errors;
  errors.exchanged.resize(features.keys.size());
  std::mt19937 random(17);
  const size_t num = features.target.size();
  for (int t = 0; t < kNumTrees; ++t) {
    std::vector<size_t> drawn;
    std::vector<bool> is_drawn(num);
    for (size_t i = 0; i < num; ++i) drawn.push_back(random() % num), is_drawn[drawn.back()] = true;
    std::vector<size_t> left;
    for (size_t i = 0; i < num; ++i)
      if (!is_drawn[i]) left.push_back(i);
    const Tree tree(features, drawn);
    std::vector<size_t> donors = left;
    for (size_t i = donors.size(); i > 1; --i) std::swap(donors[i - 1], donors[random() % i]);
    const auto error = [&](size_t trial, int key, size_t donor) {
      const double miss = tree.predict(trial, key, donor) - features.target[trial];
      return miss * miss;
    };
    for (size_t i = 0; i < left.size(); ++i) {
      errors.plain += error(left[i], -1, left[i]);
      errors.variance += (features.target[left[i]] - 0.5) * (features.target[left[i]] - 0.5);
      for (size_t key = 0; key < features.keys.size(); ++key)
        errors.exchanged[key] += error(left[i], static_cast<int>(key), donors[i]);
    }
  }
  return errors;
}

}  // namespace

SweepImportance importance_of(const Board& board) {
  const Features features = features_of(board);
  SweepImportance result;
  if (static_cast<int64_t>(features.target.size()) < kFewestTrials || features.keys.empty()) return result;
  const Errors errors = errors_of(features);
  if (!(errors.variance > 0)) return result;
  result.explained = std::max(0.0, 1 - errors.plain / errors.variance);
  const double sign = board.definition().config.metric.goal == Goal::kMin ? 1 : -1;
  double total = 0;
  for (size_t key = 0; key < features.keys.size(); ++key) {
    const double harm = std::max(0.0, errors.exchanged[key] - errors.plain);
    result.keys.push_back({features.keys[key], harm, correlation_of(features, key, sign)});
    total += harm;
  }
  for (KeyImportance& one : result.keys) one.share = total > 0 ? one.share / total : 0;
  std::stable_sort(result.keys.begin(), result.keys.end(),
                   [](const KeyImportance& a, const KeyImportance& b) { return a.share > b.share; });
  return result;
}

}  // namespace tycho
