// A shard's file and tensors as JSON.
#include "trainer/checkpoint/shard_json.h"

#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {
namespace {

using Extent = std::vector<std::pair<int64_t, int64_t>>;
using Blocks = std::vector<std::string>;

}  // namespace

Json shard_json(const WrittenShard& shard) {
  Json tensors = Json::array();
  for (const TensorRecord& tensor : shard.tensors)
    for (const TensorPiece& piece : tensor.pieces)
      tensors.push_back({{"name", tensor.name},
                         {"dtype", tensor.dtype},
                         {"shape", tensor.shape},
                         {"offset", piece.offset},
                         {"num_bytes", piece.num_bytes},
                         {"extent", piece.extent}});
  return {{"name", shard.file.name},
          {"num_bytes", shard.file.num_bytes},
          {"hash", shard.file.hash},
          {"blocks", shard.file.blocks},
          {"tensors", std::move(tensors)}};
}

WrittenShard shard_from_json(const Json& json, const std::string& place) {
  try {
    WrittenShard shard{.file = {.name = json.at("name").get<std::string>(),
                                .num_bytes = json.at("num_bytes").get<int64_t>(),
                                .hash = json.at("hash").get<std::string>(),
                                .blocks = json.at("blocks").get<Blocks>()},
                       .tensors = {}};
    for (const Json& one : json.at("tensors"))
      shard.tensors.push_back({.name = one.at("name").get<std::string>(),
                               .dtype = one.at("dtype").get<std::string>(),
                               .shape = one.at("shape").get<std::vector<int64_t>>(),
                               .pieces = {{.file = shard.file.name,
                                           .offset = one.at("offset").get<int64_t>(),
                                           .num_bytes = one.at("num_bytes").get<int64_t>(),
                                           .extent = one.at("extent").get<Extent>()}}});
    return shard;
  } catch (const Json::exception& error) {
    fail(ExitCode::kUnusable, "[checkpoint] {} does not describe a shard: {}", place, error.what());
  }
}

}  // namespace tycho
