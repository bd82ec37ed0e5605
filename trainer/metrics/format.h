// How times, numbers and foreign text are written in logs and on the terminal. Torch-free.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// "0:41:12", "2d 03:04:05"; "n/a" for what is negative or not finite.
std::string clock_text(double seconds);
/// Four significant digits without an exponent where that is readable: "3.412", "12.35", "0.6931", "1.2e-5",
/// "nan".
std::string metric_text(double value);
/// All its digits, for errors; NaN is "nan" whatever its sign.
std::string exact_text(double value);
/// Up to three significant digits, zeros dropped: "5.8e-4", "0.71", "1".
std::string short_text(double value);
/// 0.258 as "25.8 %".
std::string percent_text(double share);
/// 29.5e6 as "29.5 MFLOP".
std::string flops_text(double flops);
/// `text` on one line and without control characters (base/text/terminal_controls.h), so that a file name or
/// a message cannot steer a terminal: line ends and tabs become spaces, other controls and broken UTF-8 '?',
/// and with `unicode` false so does whatever is not ASCII.
std::string printable(std::string_view text, bool unicode);
/// `text` as the value of key=value: in double quotes, with \ before " and \, when it holds anything that
/// would end it.
std::string quoted_value(std::string_view text);
/// Columns that UTF-8 text takes, for the alphabets that we print: one per code point.
int display_width(std::string_view utf8);
/// The first `width` columns; a cut is marked by "…" or "~".
std::string cut_to_width(const std::string& text, int width, bool unicode);
/// The words of `text` on lines of at most `width` columns; a longer word is broken.
std::vector<std::string> wrap_to_width(const std::string& text, int width);
/// Whether text on this terminal is UTF-8: LC_ALL, LC_CTYPE or LANG, the first that is set, says so.
bool locale_is_utf8();

}  // namespace tycho
