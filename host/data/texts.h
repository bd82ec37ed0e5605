// `tycho data stats` of files of texts.
#pragma once
#include <string>

#include "host/arguments.h"

namespace tycho {

/// Returns true when the path is a data set, of tokens or of other columns, or a folder of data sets.
bool is_converted(const std::string& path);
/// Runs the subverb for everything that is not converted.
int show_text_stats(const Arguments& arguments);

}  // namespace tycho
