// README.md of an exported model: what the hub shows of it, from the recipe that trained it.
#pragma once
#include <string>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/huggingface/hf_export.h"

namespace tycho {

struct CardRequest {
  std::string name;     // of the repository, for the title
  std::string version;  // of Tycho
  std::string weights;  // "" for the trained ones, else which
  Json provenance;      // the run's, null if it is not there
  bool is_adapter = false;
};

/// Returns the line of a card that says what was exported, and how: two exports with the same line have the
/// same files.
std::string card_mark(const CheckpointInfo& checkpoint, const ExportOptions& options,
                      const CardRequest& request);

/// Returns the card: a YAML head, the mark and the recipe's main settings. Of data, tokenizer and base model
/// it has only names of the hub: paths of this machine are nobody else's business.
std::string model_card(const CheckpointInfo& checkpoint, const ExportOptions& options,
                       const CardRequest& request);

/// Returns true for a text with a mark.
bool is_own_card(const std::string& text);

}  // namespace tycho
