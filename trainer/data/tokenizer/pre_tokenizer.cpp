// Each step passes its pieces to the next one, so that there is never a list of all pieces.
#include "trainer/data/tokenizer/pre_tokenizer.h"

#include <utility>

#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/byte_level.h"
#include "trainer/data/tokenizer/patterns/newer_characters.h"
#include "trainer/data/tokenizer/patterns/unicode_categories.h"

namespace tycho {
namespace {

using PieceKind = PreTokenizerStep::Kind;
using Behavior = PreTokenizerStep::Behavior;
using Prepend = PreTokenizerStep::Prepend;

/// Part of a text that matched, or that lies between matches.
struct TextSpan {
  size_t begin, end;
  bool match;
};

bool is_punctuation(uint32_t code) {
  if (code < 128)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  const auto category = static_cast<Category>(categories()[code]);
  return (category >= Category::kPc && category <= Category::kPo) != is_other_punctuation(code);
}

bool matches(PieceKind kind, uint32_t code) {
  const auto category = static_cast<Category>(categories()[code]);
  switch (kind) {
    case PieceKind::kDigits:
      return (category >= Category::kNd && category <= Category::kNo) != is_other_number(code);
    case PieceKind::kPunctuation: return is_punctuation(code);
    default: return is_white_space(code);
  }
}

/// Returns the spans of a text. Every character that matches is one span.
std::vector<TextSpan> spans_of_characters(PieceKind kind, std::string_view text) {
  std::vector<TextSpan> spans;
  size_t last = 0;
  for (size_t at = 0; at < text.size();) {
    uint32_t code;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if (matches(kind, code)) {
      if (last < at) spans.push_back({last, at, false});
      spans.push_back({at, at + length, true});
      last = at + length;
    }
    at += length;
  }
  if (last < text.size()) spans.push_back({last, text.size(), false});
  return spans;
}

template <class Find>
std::vector<TextSpan> spans_of_matches(std::string_view text, bool invert, Find find) {
  std::vector<TextSpan> spans;
  size_t last = 0, from = 0;
  while (from <= text.size()) {
    const auto match = find(from);
    if (!match) break;
    const auto [begin, end] = *match;
    if (last < begin) spans.push_back({last, begin, invert});
    spans.push_back({begin, end, !invert});
    last = from = end;
    if (begin == end) {  // the next search begins after the next character
      uint32_t code;
      from += end < text.size() ? decode_utf8(text.data() + end, text.size() - end, code) : 1;
    }
  }
  if (last < text.size()) spans.push_back({last, text.size(), invert});
  return spans;
}

std::vector<TextSpan> spans_of(const PreTokenizerStep& step, std::string_view text,
                               SplitRegex::Effort& effort) {
  using Pair = std::pair<size_t, size_t>;
  if (step.kind == PieceKind::kRegex) {
    std::vector<TextSpan> spans =
        spans_of_matches(text, step.invert, [&](size_t from) -> std::optional<Pair> {
          const auto match = step.regex->find(text, from, effort);
          return match ? std::optional(Pair(match->begin, match->end)) : std::nullopt;
        });
    effort.bytes += text.size();
    return spans;
  }
  if (step.kind == PieceKind::kLiteral) {
    return spans_of_matches(text, step.invert, [&](size_t from) -> std::optional<Pair> {
      const size_t found = text.find(step.literal, from);
      return found == std::string_view::npos ? std::nullopt
                                             : std::optional(Pair(found, found + step.literal.size()));
    });
  }
  return spans_of_characters(step.kind, text);
}

/// Joins each match to the piece before it, or, if `with_next`, to the piece after it.
void join_matches(std::vector<TextSpan>& spans, bool with_next) {
  std::vector<TextSpan> joined;
  bool previous = false;
  for (size_t i = 0; i < spans.size(); ++i) {
    const TextSpan span = with_next ? spans[spans.size() - 1 - i] : spans[i];
    if (span.match && !previous && !joined.empty()) {
      (with_next ? joined.back().begin : joined.back().end) = with_next ? span.begin : span.end;
    } else {
      joined.push_back({span.begin, span.end, false});
    }
    previous = span.match;
  }
  spans.assign(joined.begin(), joined.end());
  if (with_next) spans.assign(joined.rbegin(), joined.rend());
}

void join_runs(std::vector<TextSpan>& spans) {
  std::vector<TextSpan> joined;
  for (const TextSpan span : spans) {
    if (!joined.empty() && joined.back().match == span.match) {
      joined.back().end = span.end;
    } else {
      joined.push_back(span);
    }
  }
  spans = std::move(joined);
}

void apply(Behavior behavior, std::vector<TextSpan>& spans) {
  switch (behavior) {
    case Behavior::kIsolated: break;
    case Behavior::kRemoved: std::erase_if(spans, [](const TextSpan& span) { return span.match; }); break;
    case Behavior::kWithPrevious: join_matches(spans, false); break;
    case Behavior::kWithNext: join_matches(spans, true); break;
    case Behavior::kContiguous: join_runs(spans); break;
  }
}

std::string with_metaspace(const PreTokenizerStep& step, std::string_view text, bool first) {
  std::string out;
  out.reserve(text.size() * 2);
  const bool wanted = step.prepend == Prepend::kAlways || (step.prepend == Prepend::kFirst && first);
  if (wanted && text[0] != ' ' && !text.starts_with(step.literal)) out = step.literal;
  for (const char c : text) {
    if (c == ' ') {
      out += step.literal;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

struct PreTokenizer::Work {
  const Sink& sink;
  SplitRegex::Effort effort{};
  bool mapped = false;  // pieces are spelled in the characters that stand for bytes
};

void PreTokenizer::cut(std::string_view text, bool first, const Sink& sink) const {
  Work work{sink};
  run(0, text, first, work);
}

const SplitPattern* PreTokenizer::only_pattern() const {
  static constexpr SplitPattern kWhole = SplitPattern::kNone;
  if (steps_.empty() || steps_.back().kind != PieceKind::kByteLevel) return nullptr;
  if (steps_.size() == 1) return &kWhole;
  return steps_.size() == 2 && steps_[0].kind == PieceKind::kPattern ? &steps_[0].pattern : nullptr;
}

void PreTokenizer::run(size_t number, std::string_view text, bool first, Work& work) const {
  if (number == steps_.size()) return work.mapped ? work.sink(*from_byte_level(text)) : work.sink(text);
  const PreTokenizerStep& step = steps_[number];
  switch (step.kind) {
    case PieceKind::kPattern: {
      PieceScanner scanner(step.pattern, text);
      for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next())
        run(number + 1, piece, first && piece.data() == text.data(), work);
      return;
    }
    case PieceKind::kPrefixSpace:
      return text[0] == ' ' ? run(number + 1, text, first, work)
                            : run(number + 1, ' ' + std::string(text), first, work);
    case PieceKind::kByteLevel: {
      if (number + 1 == steps_.size()) return work.sink(text);
      work.mapped = true;
      run(number + 1, to_byte_level(text), first, work);
      work.mapped = false;
      return;
    }
    case PieceKind::kMetaspace: return run(number + 1, with_metaspace(step, text, first), first, work);
    case PieceKind::kWords: {
      size_t begin = 0;
      const size_t width = step.literal.size();
      for (size_t at = text.find(step.literal, 1); at != std::string_view::npos;) {
        if (!text.substr(0, at).ends_with(step.literal)) {
          run(number + 1, text.substr(begin, at - begin), first && begin == 0, work);
          begin = at;
        }
        at = text.find(step.literal, at + width);
      }
      return run(number + 1, text.substr(begin), first && begin == 0, work);
    }
    default: break;
  }
  std::vector<TextSpan> spans = spans_of(step, text, work.effort);
  apply(step.behavior, spans);
  for (const TextSpan span : spans)
    if (span.begin < span.end)
      run(number + 1, text.substr(span.begin, span.end - span.begin), first && span.begin == 0, work);
}

}  // namespace tycho
