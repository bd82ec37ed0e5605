// The data of a run: opened once, with its notes and warnings.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/train_config.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/config.h"
#include "trainer/data/text_rows/text_dataset.h"
#include "trainer/layout/model_layout.h"
#include "trainer/metrics/reporter.h"

namespace tycho {

/// What the run trains on, then what it is evaluated on.
std::vector<DataConfig> all_data(const TrainConfig& config);

/// Text, tokenised: counting, the loader and evaluations find it again as long as it is held. Throws Error
/// (kUnusable) for rows that are wrong, and one with the code 128 + signal when `stop` holds one meanwhile.
std::vector<std::shared_ptr<const ChatDataset>> open_chats(const TrainConfig& config,
                                                           const std::atomic<int>& stop);
/// The same of texts, which cannot be stopped.
std::vector<std::shared_ptr<const TextDataset>> open_texts(const TrainConfig& config);
/// Opens what the run changes to and is evaluated on, and closes it again: it is as needed as what is trained
/// on first. Throws Error (kUnusable).
void check_later_data(const TrainConfig& config);
/// An event "data" for each, which says how rows are filled, and a warning for each of its own; one too when
/// the checkpoint that the run goes on from, the first of `candidates`, was trained with another chat
/// template.
void report_chats(const TrainConfig& config, const std::vector<std::shared_ptr<const ChatDataset>>& chats,
                  const std::vector<CheckpointInfo>& candidates, Reporter& reporter);

/// A warning for each order of what the run trains on that takes much memory and time to begin with.
void report_orders(const TrainConfig& config, int64_t num_samples, Reporter& reporter);
/// Their warnings.
void report_texts(const std::vector<std::shared_ptr<const TextDataset>>& texts, Reporter& reporter);

/// Adds a warning when the weights come with a tokenizer that has more tokens than the model, and the recipe
/// names none.
void report_tokenizer_of_weights(const TrainConfig& config, Reporter& reporter);

/// The template that wrote their conversations, of the first that have any; "" for none.
std::string used_template(const std::vector<std::shared_ptr<const ChatDataset>>& chats);

/// The text of the recipe's tokenizer, "" when it names none. Throws Error (kUnusable) when it does not fit
/// the model or the data.
std::string read_tokenizer(const TrainConfig& config, const ModelLayout& layout);

}  // namespace tycho
