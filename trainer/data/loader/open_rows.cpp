// One case per kind of data.
#include "trainer/data/loader/open_rows.h"

#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/mds/token_dataset.h"

namespace tycho {

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
