// Recursive descent over the pattern; ambiguous syntax is refused.
#include "trainer/data/tokenizer/patterns/regex_syntax.h"

#include <algorithm>
#include <array>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

using NodeKind = RegexNode::Kind;

constexpr int kMaxGroupDepth = 100;
constexpr uint32_t kMaxCount = 1000;
constexpr size_t kMaxPatternBytes = 64 << 10;

constexpr uint32_t bit(Category category) { return 1u << static_cast<int>(category); }

constexpr uint32_t bits_between(Category first, Category last) { return (bit(last) << 1) - bit(first); }

/// Returns the categories of a name as a mask: "L" is all of Lu..Lo. 0 when the name is unknown.
uint32_t mask_of(std::string_view name) {
  uint32_t mask = 0;
  for (size_t i = 0; i < std::size(kCategoryNames); ++i)
    if (name == kCategoryNames[i] || (name.size() == 1 && kCategoryNames[i][0] == name[0])) mask |= 1u << i;
  return mask;
}

const CodeSet& spaces() {
  static const CodeSet set = [] {
    std::vector<CodeRange> ranges;
    for (uint32_t code = 0; code <= 0x3000; ++code)
      if (is_white_space(code)) ranges.push_back({code, code});
    return CodeSet(std::move(ranges));
  }();
  return set;
}

bool is_ascii_letter(uint32_t code) { return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z'); }

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  RegexNode parse() {
    if (pattern_.size() > kMaxPatternBytes)
      malformed("a pattern of {} bytes is too long: at most {}", pattern_.size(), kMaxPatternBytes);
    RegexNode node = parse_choice(0);
    if (at_ < pattern_.size()) malformed("a ) without (");
    return node;
  }

 private:
  template <class... Args>
  [[noreturn]] void malformed(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kUnusable, "[regex] {} at byte {} of the pattern {}",
         fmt::format(format, std::forward<Args>(args)...), at_, pattern_);
  }
  [[noreturn]] void unsupported(std::string_view what) const { malformed("{} is not supported", what); }

  bool more() const { return at_ < pattern_.size(); }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  uint32_t next_code() {
    if (!more()) malformed("the end, unexpectedly,");
    uint32_t code;
    const size_t length = decode_utf8(pattern_.data() + at_, pattern_.size() - at_, code);
    at_ += length;
    return code;
  }

  RegexNode parse_choice(int depth);
  RegexNode parse_sequence(int depth);
  RegexNode parse_atom(int depth);
  RegexNode parse_group(int depth);
  RegexNode repeated(RegexNode atom);
  bool parse_interval(uint32_t& least, uint32_t& most);
  CodeSet parse_set(int depth);
  CodeSet parse_escaped_set(char letter);
  CodeSet parse_property(bool negated);
  uint32_t parse_escaped_code(char letter);
  uint32_t parse_hex(size_t fewest, size_t most);
  RegexNode literal(uint32_t code);
  CodeSet folded(CodeSet set) const;

  std::string_view pattern_;
  size_t at_ = 0;
  bool any_case_ = false;
};

RegexNode of_set(CodeSet set) {
  RegexNode node;
  node.kind = NodeKind::kSet;
  node.set = std::move(set);
  return node;
}

/// Adds or removes the six more characters that Oniguruma counts as word characters outside of sets: ² ³ ¹ ¼
/// ½ ¾.
CodeSet word_outside_sets(CodeSet set, bool negated) {
  const CodeSet more({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
  return negated ? set.complement().united(more).complement() : set.united(more);
}

RegexNode of_anchor(RegexNode::Anchor anchor) {
  RegexNode node;
  node.kind = NodeKind::kAnchor;
  node.anchor = anchor;
  return node;
}

RegexNode Parser::parse_choice(int depth) {
  if (depth > kMaxGroupDepth) malformed("groups nested more than {} deep", kMaxGroupDepth);
  const bool outer_case = any_case_;
  RegexNode choice;
  choice.kind = NodeKind::kChoice;
  do {
    choice.children.push_back(parse_sequence(depth));
  } while (take("|"));
  any_case_ = outer_case;
  if (choice.children.size() > 1) return choice;
  RegexNode only = std::move(choice.children.front());
  return only;
}

RegexNode Parser::parse_sequence(int depth) {
  RegexNode sequence;
  uint32_t previous = 0;  // the letter before, under (?i)
  while (more() && pattern_[at_] != '|' && pattern_[at_] != ')') {
    if (take("(?i)")) {
      any_case_ = true;
      continue;
    }
    if (take("(?-i)")) {
      any_case_ = false;
      continue;
    }
    const auto letter = static_cast<uint32_t>(static_cast<unsigned char>(pattern_[at_]) | 0x20);
    if (any_case_ && ((previous == 's' && (letter == 's' || letter == 't')) ||
                      (previous == 'f' && (letter == 'f' || letter == 'i' || letter == 'l'))))
      unsupported("ss, st, ff, fi or fl in any case, for which Unicode has single characters,");
    previous = any_case_ ? letter : 0;
    sequence.children.push_back(repeated(parse_atom(depth)));
  }
  return sequence;
}

RegexNode Parser::parse_atom(int depth) {
  const char first = pattern_[at_];
  switch (first) {
    case '(': return parse_group(depth);
    case '[': return of_set(parse_set(depth));
    case '.': ++at_; return of_set(CodeSet({{'\n', '\n'}}).complement());
    case '^': ++at_; return of_anchor(RegexNode::Anchor::kLineBegin);
    case '$': ++at_; return of_anchor(RegexNode::Anchor::kLineEnd);
    case '*':
    case '+':
    case '?': malformed("\"{}\" with nothing to repeat", first);
    case '\\': break;
    default: return literal(next_code());
  }
  if (++at_ == pattern_.size()) malformed("a \\ at the end");
  const char letter = pattern_[at_];
  if (letter == 'A' || letter == 'z' || letter == 'Z') {
    ++at_;
    return of_anchor(letter == 'A'   ? RegexNode::Anchor::kTextBegin
                     : letter == 'z' ? RegexNode::Anchor::kTextEnd
                                     : RegexNode::Anchor::kTextEndLine);
  }
  if (std::string_view("sSdDwWhHpP").find(letter) != std::string_view::npos)
    return of_set(letter == 'w' || letter == 'W' ? word_outside_sets(parse_escaped_set(letter), letter == 'W')
                                                 : parse_escaped_set(letter));
  return literal(parse_escaped_code(letter));
}

RegexNode Parser::parse_group(int depth) {
  RegexNode node;
  const bool outer_case = any_case_;
  if (take("(?i:")) {
    any_case_ = true;
  } else if (take("(?-i:")) {
    any_case_ = false;
  } else if (take("(?=")) {
    node.kind = NodeKind::kAhead;
  } else if (take("(?!")) {
    node.kind = NodeKind::kNotAhead;
  } else if (take("(?>")) {
    node.kind = NodeKind::kAtomic;
  } else if (!take("(?:")) {
    if (pattern_.substr(at_).starts_with("(?")) unsupported(fmt::format("\"{}\"", pattern_.substr(at_, 4)));
    ++at_;
  }
  node.children.push_back(parse_choice(depth + 1));
  if (!take(")")) malformed("a ( without )");
  any_case_ = outer_case;
  return node;
}

/// Reads {n}, {n,}, {n,m} or {,m}; anything else is text. Returns false for text.
bool Parser::parse_interval(uint32_t& least, uint32_t& most) {
  const size_t end = pattern_.find('}', at_);
  if (end == std::string_view::npos) return false;
  const std::string_view inside = pattern_.substr(at_ + 1, end - at_ - 1);
  const size_t comma = inside.find(',');
  const std::string_view low = inside.substr(0, comma);
  const std::string_view high = comma == std::string_view::npos ? low : inside.substr(comma + 1);
  const auto is_number = [](std::string_view text) {
    return text.size() <= 6 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!is_number(low) || !is_number(high) || (low.empty() && high.empty())) return false;
  const auto value = [](std::string_view text) {
    return static_cast<uint32_t>(std::stoul(std::string(text)));
  };
  least = low.empty() ? 0 : value(low);
  most = high.empty() ? UINT32_MAX : value(high);
  if (least > kMaxCount || (most != UINT32_MAX && most > kMaxCount))
    malformed("a repetition of more than {} times", kMaxCount);
  if (most < least) unsupported("a repetition whose most is less than its least");
  at_ = end + 1;
  return true;
}

RegexNode Parser::repeated(RegexNode atom) {
  while (more()) {
    RegexNode node;
    node.kind = NodeKind::kRepeat;
    const char sign = pattern_[at_];
    if (sign == '{') {
      if (!parse_interval(node.least, node.most)) return atom;
      if (node.least == node.most && more() && pattern_[at_] == '?')
        unsupported("{n}? , which means (?:{n})?,");
      if (take("?")) node.repeat = RegexNode::Repeat::kLazy;
    } else if (sign == '*' || sign == '+' || sign == '?') {
      ++at_;
      node.least = sign == '+' ? 1 : 0;
      if (sign == '?') node.most = 1;
      if (take("?")) {
        node.repeat = RegexNode::Repeat::kLazy;
      } else if (take("+")) {
        node.repeat = RegexNode::Repeat::kPossessive;
      }
    } else {
      return atom;
    }
    if (atom.kind == NodeKind::kAnchor || atom.kind == NodeKind::kAhead || atom.kind == NodeKind::kNotAhead)
      unsupported("repeating an anchor or a lookahead");
    node.children.push_back(std::move(atom));
    atom = std::move(node);
  }
  return atom;
}

RegexNode Parser::literal(uint32_t code) {
  if (any_case_ && code >= 128) unsupported("a character outside ASCII in any case");
  return of_set(folded(CodeSet({{code, code}})));
}

/// With (?i), adds the other case of ASCII letters, and the two characters outside ASCII whose cases these
/// are.
CodeSet Parser::folded(CodeSet set) const {
  if (!any_case_) return set;
  std::vector<CodeRange> more;
  for (uint32_t code = 'A'; code <= 'z'; ++code) {
    if (!is_ascii_letter(code) || !set.contains(code)) continue;
    more.push_back({code ^ 0x20, code ^ 0x20});
    if ((code | 0x20) == 's') more.push_back({0x17F, 0x17F});
    if ((code | 0x20) == 'k') more.push_back({0x212A, 0x212A});
  }
  return set.united(CodeSet(std::move(more)));
}

CodeSet Parser::parse_set(int depth) {
  if (depth > kMaxGroupDepth) malformed("sets nested more than {} deep", kMaxGroupDepth);
  ++at_;
  const bool negated = take("^");
  if (more() && pattern_[at_] == ']') unsupported("a ] at the start of a set");
  CodeSet set;
  while (more() && pattern_[at_] != ']') {
    if (pattern_.substr(at_).starts_with("[:")) unsupported("[:name:]");
    if (pattern_.substr(at_).starts_with("&&")) unsupported("&&");
    if (pattern_[at_] == '[') {
      set = set.united(parse_set(depth + 1));
      continue;
    }
    const auto one = [&](CodeSet& whole) -> uint32_t {
      if (pattern_[at_] != '\\') return next_code();
      if (++at_ == pattern_.size()) malformed("a \\ at the end");
      const char letter = pattern_[at_];
      if (std::string_view("sSdDwWhHpP").find(letter) == std::string_view::npos)
        return parse_escaped_code(letter);
      whole = parse_escaped_set(letter);
      return UINT32_MAX;
    };
    CodeSet whole;
    const uint32_t first = one(whole);
    uint32_t last = first;
    if (first != UINT32_MAX && at_ + 1 < pattern_.size() && pattern_[at_] == '-' &&
        pattern_[at_ + 1] != ']') {
      ++at_;
      if (pattern_[at_] == '[') unsupported("a range that ends in a set");
      last = one(whole);
      if (last == UINT32_MAX) unsupported("a range that ends in a set");
      if (last < first) malformed("a range whose end is before its start");
    }
    if (any_case_ && (first >= 128 || last >= 128)) unsupported("a set beyond ASCII in any case");
    if (first != UINT32_MAX) whole = folded(CodeSet({{first, last}}));
    set = set.united(whole);
  }
  if (!take("]")) malformed("a [ without ]");
  return negated ? set.complement() : set;
}

CodeSet Parser::parse_escaped_set(char letter) {
  ++at_;
  if (any_case_) unsupported(fmt::format("\\{} in any case", letter));
  CodeSet set;
  switch (letter | 0x20) {
    case 's': set = spaces(); break;
    case 'd': set = CodeSet(ranges_of(bit(Category::kNd))); break;
    case 'h': set = CodeSet({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}); break;
    case 'w':
      // Alphabetic, marks, decimal digits, connectors: the last ranges are letters in circles and squares.
      set = CodeSet(ranges_of(bits_between(Category::kLu, Category::kNl) | bit(Category::kPc)))
                .united(
                    CodeSet({{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}}));
      break;
    default: return parse_property(letter == 'P');
  }
  return letter < 'a' ? set.complement() : set;
}

CodeSet Parser::parse_property(bool negated) {
  if (!take("{")) malformed("\\p without {{");
  if (take("^")) negated = !negated;
  const size_t end = pattern_.find('}', at_);
  if (end == std::string_view::npos) malformed("\\p{{ without }}");
  const std::string_view name = pattern_.substr(at_, end - at_);
  const uint32_t mask = mask_of(name);
  if (mask == 0) unsupported(fmt::format("\\p{{{}}} (only general categories are)", name));
  at_ = end + 1;
  const CodeSet set(ranges_of(mask));
  return negated ? set.complement() : set;
}

uint32_t Parser::parse_escaped_code(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  if (byte >= 128) return next_code();
  ++at_;
  switch (letter) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'a': return '\a';
    case 'e': return 0x1B;
    case 'u': return parse_hex(4, 4);
    case 'x': {
      if (!take("{")) return parse_hex(1, 2);
      const uint32_t code = parse_hex(1, 6);
      if (!take("}")) malformed("\\x{{ without }}");
      return code;
    }
    default: break;
  }
  if (is_ascii_letter(byte) || (byte >= '0' && byte <= '9')) unsupported(fmt::format("\\{}", letter));
  return byte;
}

uint32_t Parser::parse_hex(size_t fewest, size_t most) {
  size_t count = 0;
  uint32_t code = 0;
  for (; count < most && more(); ++count, ++at_) {
    const auto c = static_cast<unsigned char>(pattern_[at_]);
    const unsigned lower = c | 0x20u;
    if (c >= '0' && c <= '9') {
      code = code * 16 + (c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      code = code * 16 + (lower - 'a' + 10);
    } else {
      break;
    }
  }
  if (count < fewest || code >= kCodePoints) malformed("a character code that is none");
  return code;
}

}  // namespace

RegexNode parse_regex(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace tycho
