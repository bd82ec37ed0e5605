// A file that is uploaded in parts, from where an earlier upload of it stopped.
#pragma once
#include <stop_token>
#include <string>

#include "trainer/buckets/bucket.h"
#include "trainer/buckets/s3_connection.h"

namespace tycho {

/// Uploads a file, as Bucket::put_file says. Each part has Content-MD5 and a signed SHA-256, which the store
/// checks; the parts that an unfinished upload has left are compared by their MD5.
void upload_to_s3(const S3Connection& connection, const std::string& name, const std::string& path,
                  int64_t num_bytes, const UploadOptions& options, const std::stop_token& stop);

}  // namespace tycho
