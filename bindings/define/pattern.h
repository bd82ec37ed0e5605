// Lua's patterns, matched step by step, so that a runaway pattern can be interrupted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tycho {

/// A set of bytes.
struct ByteSet {
  uint64_t words[4];
  constexpr bool holds(unsigned char c) const { return (words[c >> 6] >> (c & 63) & 1) != 0; }
  constexpr void add(unsigned char c) { words[c >> 6] |= uint64_t{1} << (c & 63); }
};

/// Called now and then with the number of steps since the last call; it may raise a Lua error, because
/// nothing here needs a destructor.
struct StepCounter {
  void* context = nullptr;
  void (*spend)(void* context, int64_t steps) = nullptr;
};

/// One pattern of the manual's section on patterns, read once and tried at any place of any text. A pattern
/// that is not well-formed fails when matching comes to the place, not before: recipes may rely on it. Owns
/// nothing; the pattern and the room for its items outlive it.
class Pattern {
 public:
  static constexpr int kMaxCaptures = 32;
  struct Item;
  struct Capture {
    const char* begin;
    ptrdiff_t size;  // or kPosition, or kOpen
  };
  static constexpr ptrdiff_t kPosition = -1, kOpen = -2;

  /// `items`: room for num_items(text). With `anchors` a ^ at the beginning is an anchor and no character.
  Pattern(std::string_view text, bool anchors, Item* items, const StepCounter& counter);
  /// The most that a pattern of this size can have.
  static size_t num_items(std::string_view text) { return text.size() + 1; }

  bool anchored() const { return anchored_; }
  /// Where a match that begins at `at` ends, or null: then error() says whether the pattern is to blame.
  const char* match(std::string_view subject, const char* at);
  /// What is wrong with the pattern as far as the newest match came; null for nothing.
  const char* error() const { return error_; }
  /// Of the newest match.
  int num_captures() const { return num_captures_; }
  const Capture& capture(int index) const { return captures_[index]; }

 private:
  struct Reader;
  struct Place;
  static Item* back_to_a_choice(Place& place);
  bool step(Item& item, Place& place);
  bool same_as_capture(const Item& item, Place& place) const;
  bool balanced(const Item& item, Place& place);
  void count(int64_t steps) {
    steps_ += steps;
    if (steps_ >= kStepsOfOneReport) report_steps();
  }
  void report_steps();

  static constexpr int64_t kStepsOfOneReport = 10'000;
  Item* items_;
  StepCounter counter_;
  bool anchored_ = false;
  int num_captures_ = 0;
  int64_t steps_ = 0;
  const char* error_ = nullptr;
  Capture captures_[kMaxCaptures];
};

enum class ItemKind : uint8_t {
  kByte,      // one byte
  kAny,       // any byte
  kSet,       // a byte of a set
  kOpen,      // (
  kClose,     // )
  kPosition,  // ()
  kSame,      // %1
  kBalanced,  // %bxy
  kFrontier,  // %f[set]
  kTextEnd,   // $ at the end
  kEnd,       // of the pattern
  kError,     // where the pattern is malformed
};

/// One of a pattern's parts. `from` and `to` belong to the match that runs: where a repeated item stands now.
struct Pattern::Item {
  ItemKind kind;
  char repeat;  // '*', '+', '-', '?', or 0 for once
  unsigned char x, y;
  int capture;   // from 0
  Item* choice;  // the repeated item before this one that the match can go back to
  const char *from, *to;
  const char* message;  // of kError
  ByteSet set;

  bool takes(unsigned char c) const {
    return kind == ItemKind::kSet ? set.holds(c) : kind == ItemKind::kAny || c == x;
  }
};

}  // namespace tycho
