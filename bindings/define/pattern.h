// Lua's patterns, matched step by step, so that a runaway pattern can be interrupted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tycho {

struct ByteSet {
  uint64_t words[4];
  constexpr bool holds(unsigned char c) const { return (words[c >> 6] >> (c & 63) & 1) != 0; }
  constexpr void add(unsigned char c) { words[c >> 6] |= uint64_t{1} << (c & 63); }
};

/// Called now and then with the number of steps since the last call. May raise a Lua error, because nothing
/// here needs a destructor.
struct StepCounter {
  void* context = nullptr;
  void (*spend)(void* context, int64_t steps) = nullptr;
};

/// One pattern of the manual's section on patterns, read once and matched at any position of any text. A
/// malformed pattern fails when matching reaches the malformed part, not before: recipes may rely on it. Does
/// not own the pattern's text and its items, which must outlive it.
class Pattern {
 public:
  static constexpr int kMaxCaptures = 32;
  struct Item;
  struct Capture {
    const char* begin;
    ptrdiff_t size;  // or kPosition, or kOpen
  };
  static constexpr ptrdiff_t kPosition = -1, kOpen = -2;

  /// `items` has space for num_items(text) items. With `anchors`, a ^ at the beginning is an anchor, not a
  /// character.
  Pattern(std::string_view text, bool anchors, Item* items, const StepCounter& counter);
  /// Returns the maximum number of items of a pattern of this size.
  static size_t num_items(std::string_view text) { return text.size() + 1; }

  bool anchored() const { return anchored_; }
  /// Returns the end of a match that begins at `at`, or null; error() then tells whether the pattern is
  /// malformed.
  const char* match(std::string_view subject, const char* at);
  /// Returns the error in the pattern, as far as the newest match has read it; null for none.
  const char* error() const { return error_; }
  /// Return the captures of the newest match.
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
  kEnd,       // end of the pattern
  kError,     // malformed part of the pattern
};

/// One part of a pattern. `from` and `to` are the state of the running match: the present extent of a
/// repeated item.
struct Pattern::Item {
  ItemKind kind;
  char repeat;  // '*', '+', '-', '?', or 0 for once
  unsigned char x, y;
  int capture;   // from 0
  Item* choice;  // the previous repeated item that the match can go back to
  const char *from, *to;
  const char* message;  // error message of kError
  ByteSet set;

  bool takes(unsigned char c) const {
    return kind == ItemKind::kSet ? set.holds(c) : kind == ItemKind::kAny || c == x;
  }
};

}  // namespace tycho
