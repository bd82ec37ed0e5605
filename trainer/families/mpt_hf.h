// Keys of config.json that only MPT has: initial values, and the defaults of its two writers.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/families/hf_keys.h"
#include "trainer/families/mpt.h"

namespace tycho {

/// Returns the key init_config of an MPT.
const HfTable<MptConfig>& mpt_init_hf_table();

/// Returns the document with the defaults of its writer, where MPT's two writers differ.
Json with_mpt_defaults(Json json);
/// Returns what transformers' own MPT would compute differently; empty when it computes the model exactly.
std::vector<std::string> beyond_transformers_mpt(const MptConfig& model);

}  // namespace tycho
