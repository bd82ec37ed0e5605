// What training data can be told.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/fields.h"

namespace tycho {

/// MDS shards of tokens, as LLM Foundry's and mosaicml-streaming's writers make them.
struct MdsConfig {
  static constexpr const char* kKind = "mds";
  static constexpr const char* kHelp = "MDS shards of token sequences.";
  std::string local_dir;
  std::string split = "train";
  bool shuffle = true;
  std::optional<int64_t> shuffle_seed;
  std::optional<int64_t> eos_token_id;
  std::optional<int64_t> bos_token_id;
  int64_t prefetch = 4;

  /// Whether attention stays within the documents that a row of tokens is packed from.
  bool separates_documents() const { return eos_token_id || bos_token_id; }
  /// The folder that holds index.json.
  std::string dir() const { return split.empty() ? local_dir : local_dir + "/" + split; }

  template <class Visitor>
  void fields(Visitor& v) {
    v("local_dir", local_dir, "Folder of the data set; its splits are folders in it.", required);
    v("split", split, "Folder inside local_dir that holds index.json; \"\" for local_dir itself.");
    v("shuffle", shuffle,
      "Visit the samples of an epoch in a random order, fixed by shuffle_seed and the epoch.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("eos_token_id", eos_token_id,
      "Documents end with this token, and attention stays within them. Default: it sees the whole row.",
      at_least(0));
    v("bos_token_id", bos_token_id, "The same for documents that begin with this token.", at_least(0));
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", positive);
  }
};

struct DataConfig : OneOf<MdsConfig> {
  static constexpr const char* kNamespace = "data";
};

}  // namespace tycho
