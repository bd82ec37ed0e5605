// Goes through all data of a run: what it trains on first, what it changes to, and what it is evaluated on.
#include "trainer/config/chat_rows.h"

#include <functional>
#include <string>

namespace tycho {
namespace {

bool has_learned_positions(const ModelConfig& model) {
  if (model.is<MptConfig>()) return model.as<MptConfig>().positions == PositionKind::kLearned;
  return model.is<Gpt2Config>();
}

void for_each_chat(const TrainConfig& config,
                   const std::function<void(const std::string& path, const ChatConfig&)>& look) {
  const auto visit = [&](const std::string& path, const DataConfig& data) {
    if (data.is<ChatConfig>()) look(path, data.as<ChatConfig>());
  };
  visit("train_data", config.train_data);
  for (size_t i = 0; i < config.data_stages.size(); ++i)
    visit(fmt::format("data_stages[{}].data", i + 1), config.data_stages[i].data);
  for (const auto& [name, data] : config.eval_data) visit("eval_data." + name, data);
}

}  // namespace

void check_chat_rows(const TrainConfig& config, ConfigProblems& problems) {
  for_each_chat(config, [&](const std::string& path, const ChatConfig& chat) {
    if (chat.padding_side == PaddingSide::kLeft && has_learned_positions(config.model))
      problems.add(
          path + ".padding_side",
          "\"left\" would move every example to other positions, which {} learns from the start of a "
          "row; write \"right\"",
          config.model.kind());
    if (chat.packing_ratio && path.starts_with("eval_data."))
      problems.add(path + ".packing_ratio",
                   "packs batches of training, and an evaluation takes every example once; remove it: pack = "
                   "true packs all examples");
  });
}

void check_packing_groups(const TrainConfig& config, ConfigProblems& problems) {
  const int64_t sequences = global_batch_sequences(config);
  for_each_chat(config, [&](const std::string& path, const ChatConfig& chat) {
    if (sequences % chat.packing_groups != 0)
      problems.add(path + ".packing_groups",
                   "{} cannot divide a global batch of {} sequences; write a divisor of {}",
                   chat.packing_groups, sequences, sequences);
  });
}

}  // namespace tycho
