// A folder that is gone afterwards, whatever happens to who works in it.
#pragma once
#include <functional>
#include <string>

namespace tycho {

/// Makes the folder `path`, or empties what an earlier process left there, and calls `body` in a child of
/// this process, which has one thread. This process waits, passes on SIGINT, SIGTERM and SIGUSR1, and removes
/// the folder when the child has ended in whatever way. Returns in both: the child with what `body` returned
/// or threw, this process with the child's exit code. `owns` false: another process makes and removes the
/// folder. Throws Error: kStorage when the folder cannot be made; kNumerics when the child was killed.
int in_throw_away_folder(const std::string& path, bool owns, const std::function<int()>& body);

}  // namespace tycho
