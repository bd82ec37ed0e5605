// Edit distance, and the suggestions made from it.
#include "trainer/base/nearest.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tycho {
namespace {

constexpr size_t kMaxSuggestions = 3;
/// Minimum length of a name for "contains": shorter names are part of too many others to be a hint.
constexpr size_t kMinContained = 3;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// neighbours that turn a into b.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

/// Returns true when b occurs in a as whole words separated by underscores.
bool contains(const std::string& a, const std::string& b) {
  const size_t begin = a.find(b), end = begin + b.size();
  if (b.size() < kMinContained || begin == std::string::npos) return false;
  return (begin == 0 || a[begin - 1] == '_') && (end == a.size() || a[end] == '_');
}

}  // namespace

std::vector<std::string> nearest(std::string_view given, const std::vector<std::string>& known) {
  const std::string wanted = lower(given).substr(0, 64);
  struct Close {
    size_t distance;
    bool other_start;  // people seldom mistype the first letter: of t.sqr's neighbours, sqrt comes before qr
    std::string name;
  };
  std::vector<Close> close;
  for (const std::string& name : known) {
    const std::string candidate = lower(name);
    const size_t distance = edit_distance(wanted, candidate);
    const size_t limit = std::max<size_t>(1, std::max(wanted.size(), candidate.size()) / 3);
    const bool near = distance <= limit && distance < candidate.size();
    if (near || contains(wanted, candidate) || contains(candidate, wanted))
      close.push_back({distance, wanted.substr(0, 1) != candidate.substr(0, 1), name});
  }
  std::stable_sort(close.begin(), close.end(), [](const Close& a, const Close& b) {
    return std::pair(a.distance, a.other_start) < std::pair(b.distance, b.other_start);
  });
  if (close.size() > kMaxSuggestions) close.resize(kMaxSuggestions);
  std::vector<std::string> names;
  for (Close& one : close) names.push_back(std::move(one.name));
  return names;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  const std::vector<std::string> names = nearest(given, known);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "; did you mean \"" : i + 1 == names.size() ? " or \"" : ", \"";
    text += names[i] + "\"";
  }
  return text.empty() ? text : text + "?";
}

}  // namespace tycho
