// Remote data in a folder of this machine or of a mounted file system.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/remote/remote_files.h"
#include "trainer/data/remote_place.h"

namespace tycho {

std::unique_ptr<RemoteFiles> make_folder_files(const std::string& folder);

/// Where the Hugging Face cache of this machine holds a data set that was downloaded: the revision that
/// refs/main names. Throws Error (kUnusable) that says how to download it.
std::string downloaded_hub_folder(const RemotePlace& place);

}  // namespace tycho
