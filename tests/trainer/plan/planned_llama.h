// A small Llama for tests of plans.
#pragma once
#include <stdexcept>
#include <string>

#include "trainer/plan/plan.h"

namespace tycho {

inline LlamaConfig& llama(TrainConfig& config) { return std::get<LlamaConfig>(config.model.value); }

inline TrainConfig llama_8b() {
  TrainConfig config;
  llama(config) = {
      .width = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .ffn_width = 14336, .vocab_size = 128256};
  return config;
}

/// A line of the plan's memory.
inline const ByteItem& item(const Plan& plan, const std::string& name) {
  for (const ByteItem& one : plan.memory)
    if (one.name == name) return one;
  throw std::runtime_error("no item " + name);
}

}  // namespace tycho
