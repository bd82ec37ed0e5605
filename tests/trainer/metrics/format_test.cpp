// Tests of how times, numbers and foreign text are written.
#include "trainer/metrics/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/metrics/fixtures.h"

namespace tycho {
namespace {

TEST(FormatTest, WritesTimes) {
  EXPECT_EQ(clock_text(0), "0:00:00");
  EXPECT_EQ(clock_text(2471.6), "0:41:12");
  EXPECT_EQ(clock_text(2 * 86400 + 3 * 3600 + 4 * 60 + 5), "2d 03:04:05");
  EXPECT_EQ(clock_text(-1), "n/a");
  EXPECT_EQ(clock_text(std::nan("")), "n/a");
  EXPECT_EQ(clock_text(std::numeric_limits<double>::infinity()), "n/a");
}

TEST(FormatTest, WritesNumbers) {
  EXPECT_EQ(metric_text(3.4125), "3.413");
  EXPECT_EQ(metric_text(12.345), "12.35");
  EXPECT_EQ(metric_text(0.6931), "0.6931");
  EXPECT_EQ(metric_text(123456), "123456");
  EXPECT_EQ(metric_text(1.2e-5), "1.20e-5");
  EXPECT_EQ(metric_text(2.5e12), "2.50e12");
  EXPECT_EQ(metric_text(std::nan("")), "nan");
  EXPECT_EQ(metric_text(-std::nan("")), "nan");  // what x86 makes of inf - inf
  EXPECT_EQ(short_text(-std::nan("")), "nan");
  EXPECT_EQ(exact_text(-std::nan("")), "nan");
  EXPECT_EQ(exact_text(-INFINITY), "-inf");
  EXPECT_EQ(exact_text(0.1), "0.1");
  EXPECT_EQ(metric_text(0), "0.0000");
  EXPECT_EQ(short_text(5.8e-4), "5.8e-4");
  EXPECT_EQ(short_text(3e-4), "3e-4");
  EXPECT_EQ(short_text(1.0 / 3000), "3.33e-4");
  EXPECT_EQ(short_text(0.71), "0.71");
  EXPECT_EQ(short_text(0), "0");
  EXPECT_EQ(short_text(1), "1");
  EXPECT_EQ(short_text(-2.5e9), "-2.5e9");
  EXPECT_EQ(short_text(std::numeric_limits<double>::max()), "1.8e308");
  EXPECT_EQ(percent_text(0.258), "25.8 %");
}

TEST(FormatTest, MakesForeignTextHarmless) {
  EXPECT_EQ(printable("plain × text", true), "plain × text");
  EXPECT_EQ(printable("plain × text", false), "plain ? text");
  EXPECT_EQ(printable("\x1b[2Jgone\r\n\x7f", true), "?[2Jgone? ?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J",
                      true),
            "?2J");  // C1 control sequence introducer
  EXPECT_EQ(printable("broken \xe2\x82", true), "broken ??");
  EXPECT_EQ(printable("\xff\xc0\x80", true), "???");
}

TEST(FormatTest, QuotesWhatWouldEndAValue) {
  EXPECT_EQ(quoted_value("plain"), "plain");
  EXPECT_EQ(quoted_value(""), "\"\"");
  EXPECT_EQ(quoted_value("two words"), "\"two words\"");
  EXPECT_EQ(quoted_value("say \"a\\b\""), "\"say \\\"a\\\\b\\\"\"");
}

TEST(FormatTest, CutsByColumns) {
  EXPECT_EQ(display_width("━━a"), 3);
  EXPECT_EQ(cut_to_width("runs/é", 6, true), "runs/é");
  EXPECT_EQ(cut_to_width("runs/é!", 6, true), "runs/…");
  EXPECT_EQ(cut_to_width("abc", 2, false), "a~");
  EXPECT_EQ(cut_to_width("abc", 0, true), "");
}

TEST(FormatTest, ReadsTheLocaleInItsOrder) {
  ScopedEnv all("LC_ALL", nullptr), ctype("LC_CTYPE", nullptr), lang("LANG", nullptr);
  EXPECT_FALSE(locale_is_utf8());
  ScopedEnv utf8("LANG", "en_US.UTF-8");
  EXPECT_TRUE(locale_is_utf8());
  ScopedEnv posix("LC_ALL", "C");
  EXPECT_FALSE(locale_is_utf8());
}

TEST(FormatTest, WrapsAtBlanks) {
  const std::vector<std::string> two = {"ab cd", "efg h"}, broken = {"abcd", "ef g"};
  EXPECT_EQ(wrap_to_width("ab cd  efg h", 5), two);
  EXPECT_EQ(wrap_to_width("abcdef g", 4), broken);
  EXPECT_EQ(wrap_to_width("äöü äöü", 3), (std::vector<std::string>{"äöü", "äöü"}));
  EXPECT_EQ(wrap_to_width("", 5), std::vector<std::string>{""});
}

}  // namespace
}  // namespace tycho
