// Remote data in a folder of this machine or of a mounted file system.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/storage/remote_files.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

std::unique_ptr<RemoteFiles> make_folder_files(const std::string& folder);

/// Returns the folder of a downloaded data set in this machine's Hugging Face cache, at the revision that
/// refs/main names. Throws Error (kUnusable) that says how to download it.
std::string downloaded_hub_folder(const RemoteUri& place);

}  // namespace tycho
