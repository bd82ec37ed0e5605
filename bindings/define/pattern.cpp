// Lua's patterns. A pattern has no alternatives, so matching walks along its items; the only choice is how
// many bytes each repeated item takes, and backtracking changes the newest choice first. There is no
// recursion.
#include "bindings/define/pattern.h"

#include <array>
#include <cstring>

namespace tycho {
namespace {

constexpr bool is_lower(int c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(int c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_digit(int c) { return c >= '0' && c <= '9'; }
constexpr bool is_graph(int c) { return c > ' ' && c < 127; }
constexpr bool is_letter(int c) { return is_lower(c) || is_upper(c); }
constexpr bool is_alnum(int c) { return is_letter(c) || is_digit(c); }

/// Returns true when %letter contains a byte; `letter` is lower case. Uses no locale, so that recipes mean
/// the same everywhere.
constexpr bool class_holds(char letter, int c) {
  switch (letter) {
    case 'a': return is_letter(c);
    case 'c': return c < 32 || c == 127;
    case 'd': return is_digit(c);
    case 'g': return is_graph(c);
    case 'l': return is_lower(c);
    case 'p': return is_graph(c) && !is_alnum(c);
    case 's': return c == ' ' || (c >= '\t' && c <= '\r');
    case 'u': return is_upper(c);
    case 'w': return is_alnum(c);
    case 'x': return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    case 'z': return c == 0;
    default: return false;
  }
}

/// The byte sets of %a to %z.
constexpr std::array<ByteSet, 26> all_classes() {
  std::array<ByteSet, 26> sets = {};
  for (int letter = 0; letter < 26; ++letter)
    for (int byte = 0; byte < 256; ++byte)
      if (class_holds(static_cast<char>('a' + letter), byte))
        sets[static_cast<size_t>(letter)].add(static_cast<unsigned char>(byte));
  return sets;
}
constexpr std::array<ByteSet, 26> kClasses = all_classes();

bool names_class(unsigned char c) { return is_letter(c) && std::strchr("acdglpsuwxz", c | 32) != nullptr; }

/// Adds the bytes of %c to the set: a class, its complement, or c itself.
void add_escaped(ByteSet& set, unsigned char c) {
  if (!names_class(c)) return set.add(c);
  const ByteSet& members = kClasses[static_cast<size_t>((c | 32) - 'a')];
  for (size_t i = 0; i < 4; ++i) set.words[i] |= is_lower(c) ? members.words[i] : ~members.words[i];
}

}  // namespace

/// Reads a pattern into items.
struct Pattern::Reader {
  const char* at;
  const char* end;
  Item* out;
  int num_captures = 0;
  bool open[kMaxCaptures] = {};

  /// Adds an item and leaves its set uninitialised, since most items have none.
  Item& add(ItemKind kind) {
    Item& item = *out++;
    item.kind = kind;
    item.repeat = 0;
    return item;
  }
  void fail(const char* message) {
    add(ItemKind::kError).message = message;
    at = end;
  }

  /// Returns the ] that ends a set, or null. The first byte is a member, and so is a byte after %.
  const char* end_of_set() const {
    for (const char* c = at; c < end; ++c) {
      if (*c == ']' && c != at) return c;
      if (*c == '%') ++c;
    }
    return nullptr;
  }

  /// Reads the set between [ and ]. Returns false when it has no end.
  bool read_set(ByteSet& set) {
    std::memset(&set, 0, sizeof set);
    const bool negated = at < end && *at == '^';
    if (negated) ++at;
    const char* const last = end_of_set();
    if (last == nullptr) return false;
    while (at < last) {
      const auto c = static_cast<unsigned char>(*at++);
      if (c == '%') {
        add_escaped(set, static_cast<unsigned char>(*at++));
      } else if (last - at >= 2 && *at == '-') {
        for (int byte = c; byte <= static_cast<unsigned char>(at[1]); ++byte)
          set.add(static_cast<unsigned char>(byte));
        at += 2;
      } else {
        set.add(c);
      }
    }
    at = last + 1;
    if (negated)
      for (uint64_t& word : set.words) word = ~word;
    return true;
  }

  void read_repeat(Item& item) {
    if (at < end && std::strchr("*+-?", *at) != nullptr && *at != '\0') item.repeat = *at++;
  }

  void read_bracket() {
    Item& item = add(ItemKind::kSet);
    if (read_set(item.set)) return read_repeat(item);
    --out;
    fail("malformed pattern (missing ']')");
  }

  void read_open() {
    if (num_captures == kMaxCaptures) return fail("too many captures");
    const bool position = at < end && *at == ')';
    if (position) ++at;
    add(position ? ItemKind::kPosition : ItemKind::kOpen).capture = num_captures;
    open[num_captures++] = !position;
  }

  void read_close() {
    for (int i = num_captures; i-- > 0;) {
      if (!open[i]) continue;
      open[i] = false;
      add(ItemKind::kClose).capture = i;
      return;
    }
    fail("invalid pattern capture");
  }

  void read_escape() {
    if (at == end) return fail("malformed pattern (ends with '%')");
    const auto c = static_cast<unsigned char>(*at++);
    if (is_digit(c)) {
      const int capture = c - '1';
      if (capture < 0 || capture >= num_captures || open[capture]) return fail("invalid capture index");
      add(ItemKind::kSame).capture = capture;
    } else if (c == 'b') {
      if (end - at < 2) return fail("unbalanced pattern");
      Item& item = add(ItemKind::kBalanced);
      item.x = static_cast<unsigned char>(*at++);
      item.y = static_cast<unsigned char>(*at++);
    } else if (c == 'f') {
      if (at == end || *at != '[') return fail("missing '[' after '%f' in pattern");
      ++at;
      read_bracket_of_frontier();
    } else if (names_class(c)) {
      Item& item = add(ItemKind::kSet);
      std::memset(&item.set, 0, sizeof item.set);
      add_escaped(item.set, c);
      read_repeat(item);
    } else {
      read_byte(c);
    }
  }

  void read_bracket_of_frontier() {
    Item& item = add(ItemKind::kFrontier);
    if (read_set(item.set)) return;
    --out;
    fail("malformed pattern (missing ']')");
  }

  void read_byte(unsigned char c) {
    Item& item = add(ItemKind::kByte);
    item.x = c;
    read_repeat(item);
  }

  void read() {
    while (at < end) {
      const auto c = static_cast<unsigned char>(*at++);
      if (c == '(')
        read_open();
      else if (c == ')')
        read_close();
      else if (c == '[')
        read_bracket();
      else if (c == '%')
        read_escape();
      else if (c == '.')
        read_repeat(add(ItemKind::kAny));
      else if (c == '$' && at == end)
        add(ItemKind::kTextEnd);
      else
        read_byte(c);
    }
    add(ItemKind::kEnd);
  }
};

/// State of a running match.
struct Pattern::Place {
  std::string_view subject;
  const char* at;
  Item* choice = nullptr;  // the newest item that can still be changed

  const char* end() const { return subject.data() + subject.size(); }
  unsigned char byte_at(const char* where) const {
    return where < subject.data() || where >= end() ? 0 : static_cast<unsigned char>(*where);
  }
};

Pattern::Pattern(std::string_view text, bool anchors, Item* items, const StepCounter& counter)
    : items_(items), counter_(counter), anchored_(anchors && text.starts_with('^')) {
  Reader reader = {text.data() + (anchored_ ? 1 : 0), text.data() + text.size(), items};
  reader.read();
}

void Pattern::report_steps() {
  const int64_t steps = steps_;
  steps_ = 0;
  if (counter_.spend != nullptr) counter_.spend(counter_.context, steps);
}

const char* Pattern::match(std::string_view subject, const char* at) {
  Place place = {subject, at};
  error_ = nullptr;
  num_captures_ = 0;
  for (Item* item = items_; item != nullptr;) {
    count(1);
    if (item->kind == ItemKind::kEnd) return place.at;
    if (item->kind == ItemKind::kError) {
      error_ = item->message;
      return nullptr;
    }
    item = step(*item, place) ? item + 1 : back_to_a_choice(place);
  }
  return nullptr;
}

bool Pattern::step(Item& item, Place& place) {
  const char*& at = place.at;
  switch (item.kind) {
    case ItemKind::kByte:
    case ItemKind::kAny:
    case ItemKind::kSet: break;
    case ItemKind::kOpen:
    case ItemKind::kPosition:
      captures_[item.capture] = {at, item.kind == ItemKind::kOpen ? kOpen : kPosition};
      num_captures_ = item.capture + 1;
      return true;
    case ItemKind::kClose: captures_[item.capture].size = at - captures_[item.capture].begin; return true;
    case ItemKind::kSame: return same_as_capture(item, place);
    case ItemKind::kBalanced: return balanced(item, place);
    case ItemKind::kFrontier:
      return !item.set.holds(place.byte_at(at - 1)) && item.set.holds(place.byte_at(at));
    case ItemKind::kTextEnd: return at == place.end();
    default: return false;
  }
  if (item.repeat == 0) {
    if (at == place.end() || !item.takes(static_cast<unsigned char>(*at))) return false;
    ++at;
    return true;
  }
  // A repeated item: as many as there are, or as few; how many is a choice to come back to.
  const char* most = at;
  if (item.repeat != '-') {
    const char* const last = item.repeat == '?' && at < place.end() ? at + 1 : place.end();
    while (most < last && item.takes(static_cast<unsigned char>(*most))) ++most;
    count(most - at);
  }
  item.from = at + (item.repeat == '+' ? 1 : 0);
  if (most < item.from) return false;
  item.to = at = most;
  item.choice = place.choice;
  place.choice = &item;
  return true;
}

/// Changes the newest choice that can be changed. Returns the item to continue with, or null when all were
/// tried.
Pattern::Item* Pattern::back_to_a_choice(Place& place) {
  for (; place.choice != nullptr; place.choice = place.choice->choice) {
    Item& item = *place.choice;
    if (item.repeat != '-') {
      if (item.to == item.from) continue;
      place.at = --item.to;
    } else {
      if (item.to == place.end() || !item.takes(static_cast<unsigned char>(*item.to))) continue;
      place.at = ++item.to;
    }
    return &item + 1;
  }
  return nullptr;
}

bool Pattern::same_as_capture(const Item& item, Place& place) const {
  const Capture& capture = captures_[item.capture];
  if (capture.size < 0 || place.end() - place.at < capture.size) return false;
  if (std::memcmp(place.at, capture.begin, static_cast<size_t>(capture.size)) != 0) return false;
  place.at += capture.size;
  return true;
}

bool Pattern::balanced(const Item& item, Place& place) {
  if (place.at == place.end() || place.byte_at(place.at) != item.x) return false;
  int64_t depth = 1;
  for (const char* at = place.at + 1; at < place.end(); ++at) {
    const unsigned char c = place.byte_at(at);
    if (c == item.y) {
      if (--depth == 0) {
        count(at - place.at);
        place.at = at + 1;
        return true;
      }
    } else if (c == item.x) {
      ++depth;
    }
  }
  count(place.end() - place.at);
  return false;
}

}  // namespace tycho
