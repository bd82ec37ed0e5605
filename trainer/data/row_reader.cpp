// One door to all kinds of data.
#include "trainer/data/row_reader.h"

#include <variant>

#include "trainer/config.h"
#include "trainer/data/chat_dataset.h"
#include "trainer/data/token_dataset.h"

namespace tycho {

RowShape row_shape(const TrainConfig& config) {
  const int64_t vocab_size =
      std::visit([](const auto& model) { return model.vocab_size; }, config.model.value);
  return {config.seq_len, vocab_size, config.tokenizer};
}

std::unique_ptr<RowReader> open_rows(const DataConfig& data, const RowShape& shape) {
  if (data.is<ChatConfig>())
    return std::make_unique<ChatReader>(open_chat_dataset(data.as<ChatConfig>(), shape));
  return std::make_unique<TokenDataset>(data.as<MdsConfig>(), shape.seq_len, shape.vocab_size);
}

int64_t count_samples(const DataConfig& data, const RowShape& shape) {
  if (data.is<ChatConfig>()) return open_chat_dataset(data.as<ChatConfig>(), shape)->num_rows();
  const auto& mds = data.as<MdsConfig>();
  const int64_t stored = read_mds_index(mds.dir()).num_samples();
  return mds.epoch_size.value_or(stored);
}

}  // namespace tycho
