// LLM Foundry's configuration of rotary positions: rope_theta, rope_impl, rope_dail_config and
// rope_hf_config.
#pragma once
#include "trainer/base/json.h"
#include "trainer/families/hf_keys.h"
#include "trainer/families/mpt.h"

namespace tycho {

/// Returns the keys of rotary positions in attn_config.
HfTable<MptConfig> foundry_rope_keys();

/// Returns an attn_config with its rope_impl written, and without whichever of rope_dail_config and
/// rope_hf_config that ignores. Returns a value that is no object unchanged.
Json with_chosen_rope(Json attn_config);

}  // namespace tycho
