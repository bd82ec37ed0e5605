// Writes a page again and again, for `--watch`.
#pragma once
#include <functional>
#include <string>

namespace tycho {

/// Returns a stamp for a page that is written now: digits that differ from those of any earlier page.
std::string page_stamp();

/// Calls `write(true)` now and whenever `state()` has changed, until Ctrl-C or another stop signal; then
/// `write(false)`, so that the open page reloads once more and no longer. Waits ten times as long as writing
/// took. Returns the exit code.
int watch_page(const std::string& path, const std::function<std::string()>& state,
               const std::function<void(bool watched)>& write);

}  // namespace tycho
