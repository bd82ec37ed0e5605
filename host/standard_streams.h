// stdout and stderr: nothing that is printed steers a terminal, and no reader that stops reading holds this
// program up.
#pragma once
#include <cstdio>
#include <functional>
#include <string_view>

namespace tycho {

/// Puts the filter (metrics/control_filter.h) and the writer (metrics/screen_writer.h) behind both streams.
/// Call it before anything is printed. stderr never waits for its reader. stdout does, because a verb's
/// answer must not lose a line, until `stopped` reports a signal that asks this program to end.
void take_standard_streams(std::function<bool()> stopped);
/// Makes stdout never wait for its reader either, and ignore a reader that leaves. For verbs that train, or
/// watch a run. log.txt has what the screen loses.
void never_wait_for_readers();
/// Passes every byte to stdout unchanged, for output that programs read. Applies to a pipe and a file; to a
/// terminal only if `always`.
void print_exact_text(bool always = false);
/// Writes a control sequence of our own and filtered text after it. Dropped while the reader of the stream
/// does not read.
void draw_on(FILE* out, std::string_view sequence, std::string_view text = "");
/// Writes the text that is kept for readers, before the program ends. For a verb that never waits, for at
/// most two seconds.
void finish_standard_streams();

}  // namespace tycho
