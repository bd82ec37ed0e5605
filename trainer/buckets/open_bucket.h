// Opens a store by the kind of its place.
#pragma once
#include <memory>

#include "trainer/buckets/bucket.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Opens the objects below a place. Makes no request. Throws Error (kUnusable) when this machine lacks
/// something that the store needs, or objects cannot be written to such a place (a web server, hf://).
std::unique_ptr<Bucket> open_bucket(const RemoteUri& place, const RequestTries& tries = {});

}  // namespace tycho
