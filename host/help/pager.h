// Long text on a terminal, a screen at a time.
#pragma once
#include <string>

namespace tycho {

/// Prints the text; through $PAGER, or less, when standard output is a terminal. An empty PAGER, `cat`, or a
/// pager that is missing prints it plainly.
void page_text(const std::string& text);

}  // namespace tycho
