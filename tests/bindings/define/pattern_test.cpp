// Patterns without Lua: what matches, where it ends, what is captured, and that steps are told.
#include "bindings/define/pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tycho {
namespace {

/// "begin-end" of the first match from 1 on, its captures behind it; "none", or what is wrong.
std::string first_match(const std::string& subject, const std::string& text) {
  std::vector<Pattern::Item> items(Pattern::num_items(text));
  Pattern pattern(text, true, items.data(), {});
  for (const char* at = subject.data(); at <= subject.data() + subject.size(); ++at) {
    const char* const end = pattern.match(subject, at);
    if (pattern.error() != nullptr) return pattern.error();
    if (end == nullptr && pattern.anchored()) break;
    if (end == nullptr) continue;
    std::string out = std::to_string(at - subject.data() + 1) + "-" + std::to_string(end - subject.data());
    for (int i = 0; i < pattern.num_captures(); ++i) {
      const Pattern::Capture& capture = pattern.capture(i);
      out += capture.size == Pattern::kPosition
                 ? " @" + std::to_string(capture.begin - subject.data() + 1)
                 : " " + std::string(capture.begin, static_cast<size_t>(capture.size));
    }
    return out;
  }
  return "none";
}

TEST(Pattern, MatchesAsTheManualSays) {
  EXPECT_EQ(first_match("hello world", "o w"), "5-7");
  EXPECT_EQ(first_match("key = value", "^(%w+)%s*=%s*(%w+)$"), "1-11 key value");
  EXPECT_EQ(first_match("abc", "()b()"), "2-2 @2 @3");
  EXPECT_EQ(first_match("f(a(b)c)d", "%b()"), "2-8");
  EXPECT_EQ(first_match("THE (quick) fox", "%f[%a]%a+%f[%A]"), "1-3");
  EXPECT_EQ(first_match("say 'it' \"now\"", "(['\"])(.-)%1"), "5-8 ' it");
  EXPECT_EQ(first_match("[[x]]", "[]]+"), "4-5");
  EXPECT_EQ(first_match("a-b", "[a%-]+"), "1-2");
  EXPECT_EQ(first_match("xaxb", "x.-b"), "1-4");
  EXPECT_EQ(first_match("abc", "^b"), "none");
  EXPECT_EQ(first_match("a$", "$"), "3-2");
}

TEST(Pattern, ReportsErrorsOnlyWhereMatchingArrives) {
  EXPECT_EQ(first_match("abc", "a["), "malformed pattern (missing ']')");
  EXPECT_EQ(first_match("abc", "x["), "none");
  EXPECT_EQ(first_match("abc", "%"), "malformed pattern (ends with '%')");
  EXPECT_EQ(first_match("abc", "a)"), "invalid pattern capture");
  EXPECT_EQ(first_match("abc", "(a%1)"), "invalid capture index");
  EXPECT_EQ(first_match("abc", std::string(33, '(')), "too many captures");
}

TEST(Pattern, CountsItsSteps) {
  const std::string subject(40, 'a'), text = "a-a-a-a-a-b";
  std::vector<Pattern::Item> items(Pattern::num_items(text));
  int64_t steps = 0;
  const auto spend = [](void* sum, int64_t more) { *static_cast<int64_t*>(sum) += more; };
  Pattern pattern(text, true, items.data(), {&steps, spend});
  EXPECT_EQ(pattern.match(subject, subject.data()), nullptr);
  EXPECT_GT(steps, 500'000);
}

}  // namespace
}  // namespace tycho
