// LLM Foundry's configuration of blocks that differ: attn_temperature_tuning and block_overrides.
#pragma once
#include "trainer/base/json.h"
#include "trainer/base/json_reader.h"
#include "trainer/families/blocks_config.h"
#include "trainer/families/hf_keys.h"
#include "trainer/families/mpt.h"

namespace tycho {

/// Reads {attn_scale, floor_scale}.
void read_temperature_tuning(const JsonPath& place, TemperatureTuningConfig& tuning);
/// Returns the model's tuning; nullopt when it has none and its blocks do not need one.
std::optional<Json> temperature_tuning_json(const MptConfig& model);

/// Reads {order, overrides, repeat} for a model with `layers` layers and this tuning. A kind gets the keys of
/// a model's tuning that is off. Overrides that change nothing become "default", and a repeating order is
/// written once. Notes what Tycho does not have and what LLM Foundry refuses.
void read_block_overrides(const JsonPath& place, int64_t layers, const TemperatureTuningConfig& tuning,
                          BlocksConfig& blocks);
/// Returns nullopt when all blocks are equal.
std::optional<Json> block_overrides_json(const MptConfig& model);

}  // namespace tycho
