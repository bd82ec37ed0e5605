// A file that is uploaded to Azure in blocks, from where an earlier upload of it stopped.
#pragma once
#include <stop_token>
#include <string>

#include "trainer/buckets/azure_connection.h"
#include "trainer/buckets/bucket.h"

namespace tycho {

/// Uploads a file, as Bucket::put_file says. The name of a block holds the MD5 of its bytes, which Azure
/// checks when they arrive, so the list of blocks tells what an unfinished upload has left.
void upload_to_azure(const AzureConnection& connection, const std::string& name, const std::string& path,
                     int64_t num_bytes, const UploadOptions& options, const std::stop_token& stop);

}  // namespace tycho
