// stdout and stderr: nothing that is printed steers a terminal, and no reader that stops reading holds this
// program up.
#pragma once
#include <cstdio>
#include <functional>
#include <string_view>

namespace tycho {

/// Puts the filter (metrics/control_filter.h) and the writer (metrics/screen_writer.h) behind both streams,
/// before anything is printed. stderr never waits for its reader. stdout does, for a verb's answer must not
/// lose a line, until `stopped` says that a signal asked this program to end.
void take_standard_streams(std::function<bool()> stopped);
/// For a verb that trains, or watches what does: from now on stdout does not wait for its reader either, and
/// a reader that leaves ends nothing. log.txt has what the screen loses.
void never_wait_for_readers();
/// What stdout carries is for programs: a pipe and a file get every byte as it is; a terminal only if
/// `always`.
void print_exact_text(bool always = false);
/// A control sequence of our own, and text behind it that is filtered. Dropped while the reader of a standard
/// stream does not read.
void draw_on(FILE* out, std::string_view sequence, std::string_view text = "");
/// Before the program ends: gives readers what is kept for them. Those of a verb that never waits have two
/// seconds.
void finish_standard_streams();

}  // namespace tycho
