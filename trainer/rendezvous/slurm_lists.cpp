// Expands Slurm's lists within limits, because they come from outside.
#include "trainer/rendezvous/slurm_lists.h"

#include <algorithm>
#include <charconv>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr size_t kMaxNodes = 65536;
constexpr size_t kMaxHostName = 255;
constexpr size_t kMaxDigits = 9;  // fits an int
constexpr int kMaxBrackets = 4;

[[noreturn]] void refuse(const char* variable, std::string_view list, const char* what, const char* example) {
  constexpr size_t kShown = 120;
  fail(ExitCode::kTopology, "[ranks] {}: {}; expected a list such as {}, got \"{}\"", variable, what, example,
       list.substr(0, kShown));
}

/// Returns the parts between commas, empty ones too.
std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Parses a number. Returns -1 if it is no plain number.
int plain_number(std::string_view digits) {
  int value = -1;
  const bool plain = !digits.empty() && digits.size() <= kMaxDigits &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (plain) std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

class HostList {
 public:
  explicit HostList(std::string_view list) : list_(list) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = end_of_item(begin);
      expand("", list.substr(begin, end - begin), kMaxBrackets);
      begin = end + 1;
    }
  }
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  [[noreturn]] void refuse_hosts(const char* what) const {
    refuse("SLURM_STEP_NODELIST", list_, what, "node[001-003,7],gpu3");
  }

  /// Returns the next comma outside of brackets, or the end.
  size_t end_of_item(size_t begin) const {
    bool inside = false;
    for (size_t i = begin; i < list_.size(); ++i) {
      if (list_[i] == ',' && !inside) return i;
      if (list_[i] == '[' || list_[i] == ']') inside = list_[i] == '[';
    }
    return list_.size();
  }

  /// Adds the names that `rest` stands for, each prefixed with `before`.
  void expand(const std::string& before, std::string_view rest, int brackets_left) {
    const size_t open = rest.find('[');
    if (open == std::string_view::npos) return add(before + std::string(rest));
    const size_t close = rest.find(']', open);
    if (close == std::string_view::npos) refuse_hosts("a bracket is not closed");
    if (brackets_left == 0) refuse_hosts("a name has more than four brackets");
    const std::string stem = before + std::string(rest.substr(0, open));
    if (stem.size() > kMaxHostName) refuse_hosts("a name is too long");
    for (const std::string_view range : split_at_commas(rest.substr(open + 1, close - open - 1))) {
      const size_t dash = std::min(range.find('-'), range.size());
      const int low = plain_number(range.substr(0, dash));
      const int high = dash < range.size() ? plain_number(range.substr(dash + 1)) : low;
      if (low < 0 || high < low) refuse_hosts("brackets contain something other than ranges of numbers");
      for (int number = low; number <= high; ++number)
        expand(stem + fmt::format("{:0{}}", number, dash), rest.substr(close + 1), brackets_left - 1);
    }
  }

  void add(std::string name) {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '.' || c == '_';
    });
    if (name.empty() || name.size() > kMaxHostName || !plain) refuse_hosts("a part of it is not a host name");
    if (hosts_.size() == kMaxNodes) refuse_hosts("more than 65536 hosts");
    hosts_.push_back(std::move(name));
  }

  std::string_view list_;
  std::vector<std::string> hosts_;
};

/// Returns the repetitions of a count: 3 for "(x3)", 1 for nothing, -1 for other text.
int repetitions(std::string_view text) {
  if (text.empty()) return 1;
  if (!text.starts_with("(x") || !text.ends_with(")")) return -1;
  return plain_number(text.substr(2, text.size() - 3));
}

}  // namespace

std::vector<std::string> expand_slurm_hosts(std::string_view list) { return HostList(list).hosts(); }

std::vector<int> expand_slurm_counts(std::string_view list) {
  const auto refuse_counts = [list](const char* what) {
    refuse("SLURM_STEP_TASKS_PER_NODE", list, what, "2(x3),1");
  };
  std::vector<int> counts;
  for (const std::string_view item : split_at_commas(list)) {
    const size_t end = std::min(item.find('('), item.size());
    const int count = plain_number(item.substr(0, end)), times = repetitions(item.substr(end));
    if (count < 0 || times < 1) refuse_counts("a part of it is not a count");
    if (counts.size() + static_cast<size_t>(times) > kMaxNodes) refuse_counts("more than 65536 nodes");
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  }
  return counts;
}

}  // namespace tycho
