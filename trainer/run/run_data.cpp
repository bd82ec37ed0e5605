// The data of a run.
#include "trainer/run/run_data.h"

#include "trainer/base/error.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

std::vector<DataConfig> all_data(const TrainConfig& config) {
  std::vector<DataConfig> all = {config.train_data};
  for (const auto& [name, data] : config.eval_data) all.push_back(data);
  return all;
}

std::vector<std::shared_ptr<const ChatDataset>> open_chats(const TrainConfig& config,
                                                           const std::atomic<int>& stop) {
  std::vector<std::shared_ptr<const ChatDataset>> chats;
  for (const DataConfig& data : all_data(config))
    if (data.is<ChatConfig>())
      chats.push_back(open_chat_dataset(data.as<ChatConfig>(),
                                        {config.seq_len, config.model.vocab_size(), config.tokenizer}, stop));
  return chats;
}

void check_eval_data(const TrainConfig& config) {
  for (const auto& [name, data] : config.eval_data)
    open_rows(data, {config.seq_len, config.model.vocab_size(), config.tokenizer});
}

void report_chats(const std::vector<std::shared_ptr<const ChatDataset>>& chats, Reporter& reporter) {
  for (const auto& chat : chats) {
    reporter.event("data", chat->summary(), Json::object());
    for (const std::string& warning : chat->warnings()) reporter.event("warning", warning, Json::object());
  }
}

std::string read_tokenizer(const TrainConfig& config, const ModelLayout& layout) {
  if (config.tokenizer.empty()) return "";
  std::string text = read_file(config.tokenizer);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_from_text(text, config.tokenizer);
  if (tokenizer->size() > layout.vocab_size)
    fail(ExitCode::kUnusable,
         "[tokenizer] {} has {} tokens, the model {}: set model.vocab_size to at least {}", config.tokenizer,
         tokenizer->size(), layout.vocab_size, tokenizer->size());
  for (const DataConfig& data : all_data(config))
    if (data.is<MdsConfig>()) check_tokenizer(data.place(), *tokenizer, config.tokenizer);
  return text;
}

}  // namespace tycho
