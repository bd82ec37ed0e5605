// A temporary folder that is removed even if the process working in it is killed.
#pragma once
#include <functional>
#include <string>

namespace tycho {

/// Makes the folder `path`, or empties what an earlier process left there, and calls `body` in a child of
/// this process, which has one thread. kStopSignals end the child at once; this process waits
/// for it, passes them on, and removes the folder however the child ended. Returns in both processes: the
/// child with what `body` returned or threw, this process with the child's exit code, 128 + signal for
/// one of those signals. `owns` false: another process makes and removes the folder. Throws Error: kStorage
/// when the folder cannot be made; kNumerics when something else killed the child.
int in_throw_away_folder(const std::string& path, bool owns, const std::function<int()>& body);

}  // namespace tycho
