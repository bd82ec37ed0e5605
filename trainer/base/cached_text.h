// Texts that are kept on this machine between runs, and made again where they are damaged or lost.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tycho {

/// Returns the user's folder of that kind, $XDG_CACHE_HOME/tycho/<kind> or ~/.cache/tycho/<kind>; "" where
/// neither variable is set.
std::string cached_folder(const std::string& kind);

/// Returns the text that cache_text() wrote to a file; nothing if there is none, or if it is damaged.
std::optional<std::string> cached_text(const std::string& path);
/// Writes a text to a file, and makes its folder. A disk that cannot be written keeps nothing. Any thread,
/// any number of processes.
void cache_text(const std::string& path, std::string_view text);

}  // namespace tycho
