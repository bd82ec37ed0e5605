// Text of other people on its way to a terminal.
#include "trainer/metrics/control_filter.h"

#include <gtest/gtest.h>

#include "trainer/base/json.h"
#include "trainer/base/text/terminal_controls.h"

namespace tycho {
namespace {

std::string filtered(const std::string& text) {
  ControlFilter filter;
  std::string out = filter.add(text);
  return out += filter.finish();
}

TEST(ControlFilterTest, WritesControlsAsJsonDoes) {
  EXPECT_EQ(filtered("a\x1b]0;title\x07z"), "a\\u001b]0;title\\u0007z");
  EXPECT_EQ(filtered("back\b\x7f"), "back\\u0008\\u007f");
  EXPECT_EQ(filtered("over\rwritten"), "over\\u000dwritten");
  EXPECT_EQ(filtered("\xc2\x9b"
                     "31m"),
            "\\u009b31m");
  EXPECT_EQ(filtered("abc\u202Etxt.exe\u2066\u200F"), "abc\\u202etxt.exe\\u2066\\u200f");
  EXPECT_EQ(filtered(std::string("nul\0l", 5)), "nul\\u0000l");
}

TEST(ControlFilterTest, LeavesTextAlone) {
  for (const char* text :
       {"", "plain\ttext\n", "Windows\r\n", "größer, 日本語, 🙂\n", "می\u200Cخواهم", "\xa0\xff"})
    EXPECT_EQ(filtered(text), text);
}

TEST(ControlFilterTest, SingleBytesThatOldTerminalsTakeAsControlsAreWritten) {
  EXPECT_EQ(filtered("\x9b"
                     "31m"),
            "\\u009b31m");
  EXPECT_EQ(filtered("\xe2\x80"), "\xe2\\u0080") << "an end inside a character";
}

TEST(ControlFilterTest, ACharacterMayComeInParts) {
  const std::string text = "ü\u202E日\xc2\x9b🙂\r\n\x1b\xe2";
  const std::string whole = filtered(text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ControlFilter filter;
    std::string parts = filter.add(text.substr(0, cut));
    parts += filter.add(text.substr(cut));
    EXPECT_EQ(parts + filter.finish(), whole) << cut;
  }
  ControlFilter filter;
  std::string bytes;
  for (const char c : text) bytes += filter.add({&c, 1});
  EXPECT_EQ(bytes + filter.finish(), whole);
}

TEST(ControlFilterTest, JsonKeepsItsMeaning) {
  const Json value = {{"name\u009b", "\x1b[2J \u202E \u2069 \x7f ü"}};
  const std::string shown = filtered(value.dump(2) + "\n");
  EXPECT_EQ(shown.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(shown.find("\u202E"), std::string::npos);
  EXPECT_EQ(Json::parse(shown), value);
}

TEST(TerminalControlsTest, AreTheControlsOfUnicode) {
  int controls = 0;
  for (uint32_t code = 0; code < 0x110000; ++code) controls += is_terminal_control(code) ? 1 : 0;
  EXPECT_EQ(controls, 65 + 12) << "general category Cc, and the property Bidi_Control";
}

}  // namespace
}  // namespace tycho
