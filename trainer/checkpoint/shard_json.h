// A written shard as JSON, which one rank sends to another. Torch-free.
#pragma once
#include <string>

#include "trainer/base/json.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {

Json shard_json(const WrittenShard& shard);
/// Throws Error (kUnusable) tagged with `place` when a field is missing or has another type. The commit
/// checks whether the shards make a whole checkpoint.
WrittenShard shard_from_json(const Json& json, const std::string& place);

}  // namespace tycho
