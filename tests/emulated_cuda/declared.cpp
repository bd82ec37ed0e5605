// Keeps the declared bytes as sorted spans without overlap.
#include "tests/emulated_cuda/declared.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/emulated_cuda/memory.h"

namespace emulated {
namespace {

struct Span {
  uintptr_t begin, end;
};

class Spans {
 public:
  Spans() = default;
  explicit Spans(std::vector<Span> all) {
    std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    for (const Span& span : all) {
      if (spans_.empty() || spans_.back().end < span.begin)
        spans_.push_back(span);
      else
        spans_.back().end = std::max(spans_.back().end, span.end);
    }
  }
  bool hold(uintptr_t at, size_t size) {
    if (holds(latest_, at, size)) return true;
    const auto next = std::upper_bound(spans_.begin(), spans_.end(), at,
                                       [](uintptr_t x, const Span& span) { return x < span.begin; });
    if (next == spans_.begin() || !holds(*std::prev(next), at, size)) return false;
    latest_ = *std::prev(next);
    return true;
  }

 private:
  static bool holds(const Span& span, uintptr_t at, size_t size) {
    return at >= span.begin && at + size <= span.end;
  }
  std::vector<Span> spans_;
  Span latest_ = {0, 0};
};

bool is_checked = false;
Spans reads, writes;
uint32_t first_turn = 0;

Spans spans_of(const tycho::KernelWork& work, bool written) {
  std::vector<Span> all;
  for (const tycho::Access& one : work.accesses)
    for (int64_t row = 0; (one.written == written || one.times == 0) && row < one.rows; ++row) {
      const auto begin = reinterpret_cast<uintptr_t>(one.data) + static_cast<uintptr_t>(row * one.step_bytes);
      all.push_back({begin, begin + (one.chosen == tycho::Access::Chosen::kOfTable
                                         ? bytes_from(one.data)
                                         : static_cast<uintptr_t>(one.row_bytes))});
    }
  return Spans(std::move(all));
}

}  // namespace

DeclaredCall::DeclaredCall(tycho::KernelWork work) : work_(std::move(work)) {
  reads = spans_of(work_, false), writes = spans_of(work_, true);
  first_turn = runner.turn + 1;
  is_checked = true;
}

DeclaredCall::~DeclaredCall() { is_checked = false; }

std::string DeclaredCall::untouched() const {
  for (size_t i = 0; i < work_.accesses.size(); ++i) {
    const tycho::Access& one = work_.accesses[i];
    if (one.times < 1 || one.chosen != tycho::Access::Chosen::kAll) continue;
    for (int64_t row = 0; row < one.rows; ++row) {
      const auto begin = reinterpret_cast<uintptr_t>(one.data) + static_cast<uintptr_t>(row * one.step_bytes);
      const uintptr_t byte =
          first_untouched(begin, static_cast<size_t>(one.row_bytes), one.written, first_turn);
      if (byte != 0)
        return std::string(one.written ? "a write" : "a read") + " of byte " + std::to_string(byte - begin) +
               " of row " + std::to_string(row) + " of " + std::to_string(one.rows) + " rows of " +
               std::to_string(one.row_bytes) + " bytes, access " + std::to_string(i);
    }
  }
  return "";
}

bool is_declared(uintptr_t at, size_t size, bool write, bool written_before) {
  if (!is_checked) return true;
  return write ? writes.hold(at, size) : reads.hold(at, size) || (written_before && writes.hold(at, size));
}

uint32_t first_turn_of_call() { return first_turn; }

}  // namespace emulated
