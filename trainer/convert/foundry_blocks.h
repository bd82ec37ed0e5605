// LLM Foundry's configuration of blocks that differ: attn_temperature_tuning and block_overrides.
#pragma once
#include "trainer/base/json.h"
#include "trainer/base/json_reader.h"
#include "trainer/convert/hf_keys.h"
#include "trainer/families/blocks_config.h"
#include "trainer/families/mpt_config.h"

namespace tycho {

/// {attn_scale, floor_scale}.
void read_temperature_tuning(const JsonPlace& place, TemperatureTuningConfig& tuning);
/// The model's own; nothing where it has none and its blocks do not need one.
std::optional<Json> temperature_tuning_json(const MptConfig& model);

/// {order, overrides, repeat} for a model of so many layers and of this tuning. What a kind has of a tuning
/// that is off becomes its own. Overrides that change nothing become "default", and an order that begins
/// again is written once. Notes what Tycho does not have and what LLM Foundry refuses.
void read_block_overrides(const JsonPlace& place, int64_t layers, const TemperatureTuningConfig& tuning,
                          BlocksConfig& blocks);
/// Nothing for blocks that are all alike.
std::optional<Json> block_overrides_json(const MptConfig& model);

}  // namespace tycho
