// All data is opened at the start, also that of later stages and of evaluations, so that mistakes in it are
// found before the run folder is touched.
#include "trainer/run/run_data.h"

#include "trainer/base/error.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/data/loader/chat_rows.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/mds/cached_index.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/huggingface/hf_tokenizer.h"
#include "trainer/recipe/data_stages.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/saving/initial_weights.h"

namespace tycho {
std::vector<std::shared_ptr<const ChatDataset>> open_chats(const TrainConfig& config,
                                                           const OpenedData& opened,
                                                           const std::atomic<int>& stop) {
  std::vector<std::shared_ptr<const ChatDataset>> chats;
  for (const auto& [key, data] : all_data(config))
    if (const auto* chat = std::get_if<ChatConfig>(&data.value))
      chats.push_back(open_chat_dataset(*chat, row_shape(config), opened, stop));
  return chats;
}

std::vector<std::shared_ptr<const TextDataset>> open_texts(const TrainConfig& config,
                                                           const OpenedData& opened) {
  std::vector<std::shared_ptr<const TextDataset>> texts;
  for (const auto& [key, data] : all_data(config))
    if (const auto* text = std::get_if<TextConfig>(&data.value))
      texts.push_back(open_text_dataset(*text, row_shape(config), opened));
  return texts;
}

void check_data(const TrainConfig& config, const OpenedData& opened) {
  const OrderShape order = order_shape(config);
  RowShape shape = row_shape(config);
  if (!config.train_data.is<ChatConfig>())
    open_rows(config.train_data, shape, opened, order);  // else: open_chats
  for (size_t i = 0; i < config.data_stages.size(); ++i) {
    const DataStageConfig& stage = config.data_stages[i];
    shape.key = fmt::format("data_stages[{}].data", i + 1);
    open_rows(stage.data, shape, opened, order);
    const int64_t samples = count_samples(stage.data, shape, opened, order);
    if (samples < order.global_sequences)
      fail(ExitCode::kUnusable, "[data] an epoch of data stage {} has {} samples, one global batch needs {}",
           stage.name, samples, order.global_sequences);
  }
  for (const auto& [name, data] : config.eval_data) {
    shape.key = "eval_data." + name;
    open_rows(data, shape, opened);
  }
}

std::string used_template(const std::vector<std::shared_ptr<const ChatDataset>>& chats) {
  for (const auto& chat : chats)
    if (std::string text = chat->used_template(); !text.empty()) return text;
  return "";
}

void report_chats(const TrainConfig& config, const std::vector<std::shared_ptr<const ChatDataset>>& chats,
                  const std::vector<CheckpointInfo>& candidates, Reporter& reporter) {
  for (const auto& chat : chats) {
    reporter.event("data", chat_rows(chat, order_shape(config)).summary(), Json::object());
    for (const std::string& note : chat->notes()) reporter.event("data", note, Json::object());
    for (const std::string& warning : chat->warnings()) reporter.event("warning", warning, Json::object());
  }
  if (config.step_tokens)
    reporter.event(
        "data",
        fmt::format("tokens are counted without padding, as Composer counts them: about {:.0f} a step",
                    config.step_tokens->mean()),
        Json::object());
  const std::string text = used_template(chats);
  if (text.empty() || candidates.empty()) return;
  const CheckpointReader reader(candidates.front());
  if (reader.has_file(kChatTemplateFile) && reader.read_text_file(kChatTemplateFile) != text)
    reporter.event("warning",
                   "the chat template is another one than that of " + candidates.front().path +
                       ": conversations have another text from here on",
                   Json::object());
}

void report_orders(const TrainConfig& config, const OpenedData& opened, int64_t num_samples,
                   Reporter& reporter) {
  const auto report = [&](const std::string& name, const DataConfig& data, int64_t samples) {
    if (const std::string text = one_list_warning(data, samples); !text.empty())
      reporter.event("warning", fmt::format("{}.shuffle_algo: {}", name, text), Json::object());
  };
  report("train_data", config.train_data, num_samples);
  for (const DataStageConfig& stage : config.data_stages)
    if (shuffles_one_list(stage.data))
      report("data_stages." + stage.name, stage.data,
             count_samples(stage.data, row_shape(config), opened, order_shape(config)));
}

void report_texts(const std::vector<std::shared_ptr<const TextDataset>>& texts, Reporter& reporter) {
  for (const auto& data : texts) {
    for (const std::string& note : data->notes()) reporter.event("data", note, Json::object());
    for (const std::string& warning : data->warnings()) reporter.event("warning", warning, Json::object());
  }
}

void report_tokenizer_of_weights(const TrainConfig& config, Reporter& reporter) {
  const std::string& weights = initial_weights_path(config.model);
  if (!config.tokenizer.empty() || weights.empty()) return;
  const auto files = files_beside_weights(weights);
  for (const char* name : {kTokenizerFile, kSentencePieceFile}) {
    const auto found = files.find(name);
    if (found == files.end()) continue;
    try {
      const auto tokenizer = tokenizer_from_text(found->second, name, files_beside_tokenizer(files));
      if (tokenizer->size() > config.model.vocab_size())
        reporter.event("warning",
                       too_many_tokens(fmt::format("the {} of {}", name, weights), tokenizer->size(),
                                       config.model.vocab_size()),
                       Json::object());
    } catch (const Error& error) {
      if (error.code() != ExitCode::kUnusable) throw;  // of another kind: an import says so
    }
    return;
  }
}

std::string read_tokenizer(const TrainConfig& config, const ModelLayout& layout) {
  if (config.tokenizer.empty()) return "";
  std::string text = read_tokenizer_file(config.tokenizer);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(config.tokenizer);
  if (tokenizer->size() > layout.vocab_size && !initial_weights_path(config.model).empty())
    fail(ExitCode::kUnusable,
         "[tokenizer] expected at most the {} tokens of the model, got {} in {}: model.weights has no rows "
         "for the rest. Use the tokenizer that these weights were trained with, or weights whose embedding "
         "was resized{}",
         layout.vocab_size, tokenizer->size(), config.tokenizer, note_added_beside(*tokenizer));
  if (tokenizer->size() > layout.vocab_size)
    fail(ExitCode::kUnusable,
         "[tokenizer] {} has {} tokens, the model {}: set model.vocab_size to at least {}{}",
         config.tokenizer, tokenizer->size(), layout.vocab_size, tokenizer->size(),
         note_added_beside(*tokenizer));
  for (const auto& [key, data] : all_data(config)) check_made_with(data, tokenizer->hash(), config.tokenizer);
  return text;
}

}  // namespace tycho
