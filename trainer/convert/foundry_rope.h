// LLM Foundry's configuration of rotary positions: rope_theta, rope_impl, rope_dail_config and
// rope_hf_config.
#pragma once
#include "trainer/base/json.h"
#include "trainer/convert/hf_keys.h"
#include "trainer/families/mpt_config.h"

namespace tycho {

/// Their keys in attn_config.
HfTable<MptConfig> foundry_rope_keys();

/// An attn_config that says its rope_impl, without the one of rope_dail_config and rope_hf_config that this
/// does not look at; what is no object comes back as it is.
Json with_chosen_rope(Json attn_config);

}  // namespace tycho
