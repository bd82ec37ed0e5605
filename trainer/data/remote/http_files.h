// Remote data on a web server, and in Azure's Blob storage by a SAS.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/remote/remote_files.h"
#include "trainer/data/remote_place.h"

namespace tycho {

/// `sas_env`: the variable with the query of every URL. By default https://*.blob.core.windows.net uses
/// AZURE_STORAGE_SAS_TOKEN where it is set, and others have none. Its value is masked from here on. Throws
/// Error (kUnusable) when a variable that was named is not set.
std::unique_ptr<RemoteFiles> make_web_files(const RemotePlace& place, const std::string& sas_env);

}  // namespace tycho
