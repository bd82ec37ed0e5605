// Samples are read one after the other: one shard is open at a time.
#include "trainer/data/mds/data_set_records.h"

#include "trainer/base/error.h"
#include "trainer/data/mds/mds_reader.h"

namespace tycho {
namespace {

class DataSetRecords final : public RecordSource {
 public:
  DataSetRecords(const std::string& folder, const std::string& name)
      : reader_(read_mds_index(folder), VerifyShards::kOnce, RawShards::kInMemory),
        column_(reader_.column(name)) {
    const std::string& encoding = reader_.index().shards[0].columns[column_].encoding;
    if (encoding != "str")
      fail(ExitCode::kUnusable,
           "[data] column \"{}\" of {} has the encoding {}, not str; name the one that contains the text: "
           "--field NAME",
           name, folder, encoding);
  }

  bool next(std::string& text) override {
    const MdsIndex& index = reader_.index();
    if (sample_ == index.num_samples()) return false;
    text = reader_.read(sample_++)[column_];
    if (sample_ == index.first_sample[shard_ + 1]) bytes_ += index.shards[shard_++].stored_bytes();
    return true;
  }

  int64_t file_bytes() const override { return bytes_; }

 private:
  MdsReader reader_;
  size_t column_, shard_ = 0;
  int64_t sample_ = 0, bytes_ = 0;  // bytes_: of the shards that have been read
};

}  // namespace

std::unique_ptr<RecordSource> open_data_set_texts(const std::string& folder, const std::string& name) {
  return std::make_unique<DataSetRecords>(folder, name);
}

}  // namespace tycho
