// Remote data on a web server, and in Azure's Blob storage by a SAS.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/storage/remote_files.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// `sas_env` names the variable with the query of every URL. By default https://*.blob.core.windows.net uses
/// AZURE_STORAGE_SAS_TOKEN where it is set, and other hosts have no query. The variable's value is masked
/// from then on. Throws Error (kUnusable) when a variable that was named is not set.
std::unique_ptr<RemoteFiles> make_web_files(const RemoteUri& place, const std::string& sas_env);

}  // namespace tycho
