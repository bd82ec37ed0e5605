// Remote data in a repository on the Hugging Face hub.
#pragma once
#include <memory>

#include "trainer/data/storage/remote_files.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Reads files at the commit that the name has in this process: those of the hub's cache on this machine,
/// others from the hub, which are not kept there. Asks the hub when the first file is fetched.
std::unique_ptr<RemoteFiles> make_hub_files(const RemoteUri& place);

}  // namespace tycho
