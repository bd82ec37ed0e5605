// The part of a server's error that people can read.
#pragma once
#include <string>

namespace tycho {

/// Returns the message of S3 or Azure, or the beginning of a page, as one line without secrets.
std::string shown_server_text(const std::string& text);

}  // namespace tycho
