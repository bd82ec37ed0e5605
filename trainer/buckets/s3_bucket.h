// S3, and stores that speak its protocol, to write to.
#pragma once
#include <memory>

#include "trainer/buckets/bucket.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Opens the objects below s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, with the credentials of
/// aws_identity(), and the region and endpoint of find_aws_settings().
std::unique_ptr<Bucket> make_s3_bucket(const RemoteUri& place, const RequestTries& tries);

}  // namespace tycho
