// Opens a remote by the kind of its place.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/storage/remote_files.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Opens the files of a remote. `sas_env` names the variable that holds the query of every URL; "" for the
/// usual one. Throws Error (kUnusable) when this machine lacks something that the remote needs.
std::unique_ptr<RemoteFiles> open_remote_files(const RemoteUri& place, const std::string& sas_env);

}  // namespace tycho
