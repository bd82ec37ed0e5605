// Remote data in S3 and in stores that speak its protocol.
#pragma once
#include <memory>

#include "trainer/data/remote/remote_files.h"
#include "trainer/data/remote_place.h"

namespace tycho {

/// Signs requests with what find_aws_settings() finds; without credentials, as for public buckets, it does
/// not.
std::unique_ptr<RemoteFiles> make_s3_files(const RemotePlace& place);

}  // namespace tycho
