// The data of a run: opened once, with its notes and warnings.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/layout/model_layout.h"
#include "trainer/metrics/reporter.h"
#include "trainer/recipe/data.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Tokenises conversations. Throws Error: kUnusable for invalid rows, 128 + signal when `stop` becomes a
/// signal.
std::vector<std::shared_ptr<const ChatDataset>> open_chats(const TrainConfig& config,
                                                           const OpenedData& opened,
                                                           const std::atomic<int>& stop);
/// Opens text data sets. Not interruptible.
std::vector<std::shared_ptr<const TextDataset>> open_texts(const TrainConfig& config,
                                                           const OpenedData& opened);
/// Opens the data that the run trains on, changes to and is evaluated on, reads the first sample of each, and
/// closes it again. Throws Error (kUnusable).
void check_data(const TrainConfig& config, const OpenedData& opened);
/// Reports, for each data set, an event "data" that says how rows are filled, and its warnings. Also warns
/// when the checkpoint that the run resumes from, the first of `candidates`, was trained with another chat
/// template.
void report_chats(const TrainConfig& config, const std::vector<std::shared_ptr<const ChatDataset>>& chats,
                  const std::vector<CheckpointInfo>& candidates, Reporter& reporter);

/// Warns about each order of training data that takes much memory and time to build.
void report_orders(const TrainConfig& config, const OpenedData& opened, int64_t num_samples,
                   Reporter& reporter);
/// Reports the warnings of text data sets.
void report_texts(const std::vector<std::shared_ptr<const TextDataset>>& texts, Reporter& reporter);

/// Warns when the weights come with a tokenizer that has more tokens than the model, and the recipe names
/// none.
void report_tokenizer_of_weights(const TrainConfig& config, Reporter& reporter);

/// Returns the template of the first data set with conversations; "" when none has any.
std::string used_template(const std::vector<std::shared_ptr<const ChatDataset>>& chats);

/// Returns the text of the recipe's tokenizer, "" when it names none. Throws Error (kUnusable) when it does
/// not fit the model or the data.
std::string read_tokenizer(const TrainConfig& config, const ModelLayout& layout);

}  // namespace tycho
