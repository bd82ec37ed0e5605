// `tycho data stats` of files of texts.
#pragma once
#include <string>

#include "host/arguments.h"

namespace tycho {

/// Whether the path is a data set, or a folder of such: of tokens or of other columns.
bool is_converted(const std::string& path);
/// The subverb for everything else.
int show_text_stats(const Arguments& arguments);

}  // namespace tycho
