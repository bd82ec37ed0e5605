// A folder as a store of objects: of a mounted file system, and for tests.
#pragma once
#include <memory>
#include <string>

#include "trainer/buckets/bucket.h"

namespace tycho {

/// Opens a folder, which is created by the first put. Each object is a file. An upload becomes visible by a
/// rename; an unfinished one is a file ".tycho-upload-..." beside its object, and starts over.
std::unique_ptr<Bucket> make_folder_bucket(const std::string& folder);

}  // namespace tycho
