// A temporary folder that is removed even if the process working in it is killed.
#pragma once
#include <functional>
#include <string>

namespace tycho {

/// Makes the folder `path`, or empties the leftovers of an earlier process, and calls `body` in a child of
/// this process. Requires that this process has one thread. kStopSignals end the child at once; this process
/// waits for it, passes them on, and removes the folder however the child ended. Returns in both processes:
/// in the child what `body` returned or threw, in this process the child's exit code, 128 + signal for one of
/// those signals. With `owns` false, another process makes and removes the folder. Throws Error: kStorage
/// when the folder cannot be made; kNumerics when something else killed the child.
int in_throw_away_folder(const std::string& path, bool owns, const std::function<int()>& body);

}  // namespace tycho
