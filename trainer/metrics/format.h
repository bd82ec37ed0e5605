// Formats times, numbers and foreign text for logs and the terminal. Torch-free.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Returns "0:41:12" or "2d 03:04:05"; "n/a" for a value that is negative or not finite.
std::string clock_text(double seconds);
/// Returns four significant digits, without an exponent where that is readable: "3.412", "12.35", "0.6931",
/// "1.2e-5", "nan".
std::string metric_text(double value);
/// Returns all digits, for errors. NaN is "nan" whatever its sign.
std::string exact_text(double value);
/// Returns up to three significant digits without trailing zeros: "5.8e-4", "0.71", "1".
std::string short_text(double value);
/// Returns 0.258 as "25.8 %".
std::string percent_text(double share);
/// Returns 29.5e6 as "29.5 MFLOP".
std::string flops_text(double flops);
/// Returns `text` on one line and without control characters (base/text/terminal_controls.h), so that a file
/// name or message cannot control a terminal. Line ends and tabs become spaces; other controls and broken
/// UTF-8 become '?', and with `unicode` false so do all non-ASCII characters.
std::string printable(std::string_view text, bool unicode);
/// Returns `text` as the value of key=value: in double quotes, with \ before " and \, when it contains a
/// character that would end it.
std::string quoted_value(std::string_view text);
/// Returns the columns that UTF-8 text takes, for the alphabets that we print: one per code point.
int display_width(std::string_view utf8);
/// Returns the first `width` columns; "…" or "~" marks a cut.
std::string cut_to_width(const std::string& text, int width, bool unicode);
/// Breaks `text` between words into lines of at most `width` columns. Splits a longer word.
std::vector<std::string> wrap_to_width(const std::string& text, int width);
/// Returns true when text on this terminal is UTF-8 by LC_ALL, LC_CTYPE or LANG, whichever is set first.
bool locale_is_utf8();

}  // namespace tycho
