// Azure's Blob storage: the address of a container, and the credentials of requests to it.
#pragma once
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Credentials of requests. With neither, requests are anonymous, as for containers that everybody may read.
struct AzureAccess {
  std::string sas;             // query of every URL
  bool may_use_token = false;  // the token of azure_token(), where this machine or job has an identity
};

/// Returns true for https://ACCOUNT.blob.core.windows.net and its equals in Azure's other clouds.
bool is_azure_url(const std::string& url);

/// Returns the place as kAzure: https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX is az://. Other places
/// are returned as they are.
RemoteUri as_azure_place(const RemoteUri& place);

/// Returns the URL of the container of a kAzure place, without a trailing "/". AZURE_STORAGE_SERVICE_ENDPOINT
/// replaces the account's, as for the command line `az`.
std::string azure_container_url(const RemoteUri& place);

/// Finds the credentials: the SAS in the variable `sas_env`; for Azure, by default AZURE_STORAGE_SAS_TOKEN,
/// else a token. The SAS is masked from then on. Throws Error (kUnusable) when a variable that was named is
/// not set, or is no query.
AzureAccess find_azure_access(const RemoteUri& place, const std::string& sas_env);

/// Returns the headers of a request to `url`, "Name: value", with a token that is still good. Throws Error
/// as azure_token() does, and kUnusable rather than sending a token over http:// to another machine.
std::vector<std::string> azure_headers(const AzureAccess& access, const std::string& url,
                                       const std::stop_token& stop);

}  // namespace tycho
