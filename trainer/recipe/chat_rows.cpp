// Each data set of conversations has its rules.
#include "trainer/recipe/chat_rows.h"

#include <functional>
#include <string>

#include "trainer/recipe/batch_width.h"
#include "trainer/recipe/context_parallel.h"
#include "trainer/recipe/data_stages.h"

namespace tycho {
namespace {

bool has_learned_positions(const ModelConfig& model) {
  if (model.is<MptConfig>()) return model.as<MptConfig>().positions == PositionKind::kLearned;
  return model.is<Gpt2Config>();
}

void for_each_chat(const TrainConfig& config,
                   const std::function<void(const std::string& path, const ChatConfig&)>& look) {
  for (const auto& [path, data] : all_data(config))
    if (const auto* chat = std::get_if<ChatConfig>(&data.value)) look(path, *chat);
}

/// Checks that ranks that share sequences get equal parts of rows of any width.
void check_trimmed_padding(const TrainConfig& config, const std::string& path, const ChatConfig& chat,
                           ConfigProblems& problems) {
  if (chat.bucket_batches > 1 && !chat.trim_padding)
    problems.add(path + ".bucket_batches",
                 "saves nothing while every row has seq_len tokens; set trim_padding = true, or remove it");
  if (chat.bucket_batches > 1 && path.starts_with("eval_data."))
    problems.add(path + ".bucket_batches",
                 "groups batches of training, and an evaluation takes its rows in their order; remove it");
  if (!chat.trim_padding) return;
  if (chat.pack)
    problems.add(path + ".trim_padding", "packed rows are full; set pack = false, or remove trim_padding");
  const int64_t parts = row_parts(config.parallel), step = width_step(config.seq_len);
  if (step % parts != 0)
    problems.add(
        path + ".trim_padding",
        "makes rows whole multiples of {} tokens, which parallel.tp = {} and parallel.cp = {} cannot "
        "share evenly (they need multiples of {}); remove it",
        step, config.parallel.tp, config.parallel.cp, parts);
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
    check_trimmed_padding(config, path, chat, problems);
    problems.idle(path + ".compat", chat.compat != ChatCompat::kNone, path == "train_data",
                  "outside train_data, where no tokens are counted");
    if (chat.compat != ChatCompat::kNone && !config.data_stages.empty())
      problems.add(path + ".compat",
                   "\"composer\" cannot be combined with data_stages, which it lacks; remove it");
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
