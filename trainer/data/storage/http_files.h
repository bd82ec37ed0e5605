// Remote data on a web server, and in Azure's Blob storage by a SAS or a token.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/storage/remote_files.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// `sas_env` names the variable with the query of every URL. Azure's Blob storage, az:// and https://, has
/// the credentials of azure_access.h; other hosts have no query by default. The variable's value is masked
/// from then on. Throws Error (kUnusable) when a variable that was named is not set.
std::unique_ptr<RemoteFiles> make_web_files(const RemoteUri& place, const std::string& sas_env);

}  // namespace tycho
