// Remote data in S3 and in stores that speak its protocol.
#pragma once
#include <memory>

#include "trainer/data/storage/remote_files.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Opens objects of a bucket. Requests are signed with the credentials of aws_identity(); without
/// credentials, as for public buckets, they are not signed.
std::unique_ptr<RemoteFiles> make_s3_files(const RemoteUri& place);

}  // namespace tycho
