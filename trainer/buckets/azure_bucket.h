// Azure's Blob storage to write to.
#pragma once
#include <memory>

#include "trainer/buckets/bucket.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Opens the blobs below az://ACCOUNT/CONTAINER/PREFIX, with a SAS or the token of an identity; see
/// find_azure_access(). Azure itself removes an unfinished upload after a week.
std::unique_ptr<Bucket> make_azure_bucket(const RemoteUri& place, const RequestTries& tries);

}  // namespace tycho
