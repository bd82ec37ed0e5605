// Remote data in a folder of this machine or of a mounted file system.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/storage/remote_files.h"

namespace tycho {

std::unique_ptr<RemoteFiles> make_folder_files(const std::string& folder);

}  // namespace tycho
