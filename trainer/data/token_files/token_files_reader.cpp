// Files stay open; a row is one pread.
#include "trainer/data/token_files/token_files_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/rows/stored_tokens.h"
#include "trainer/data/token_files/token_file.h"

namespace tycho {
namespace {

/// Returns the number of tokens from the beginning of a row to the beginning of the next.
int64_t stride_of(const TokenFile& file, int64_t seq_len) {
  return file.format == TokenFormat::kNanoset ? seq_len + 1 : seq_len;
}

int64_t rows_of(const TokenFile& file, int64_t seq_len) {
  if (file.num_tokens < seq_len + 1) return 0;
  return (file.num_tokens - seq_len - 1) / stride_of(file, seq_len) + 1;
}

/// Returns the end of the rows of each file, in the numbering of all files.
std::vector<int64_t> row_ends(const std::vector<TokenFile>& files, const TokenFilesConfig& config,
                              int64_t seq_len) {
  std::vector<int64_t> ends;
  int64_t sum = 0;
  for (const TokenFile& file : files) ends.push_back(sum += rows_of(file, seq_len));
  if (sum == 0)
    fail(ExitCode::kUnusable,
         "[data] no file of {} has {} tokens, one more than seq_len; set a smaller seq_len", config.path,
         seq_len + 1);
  if (sum >= int64_t{1} << 32)
    fail(ExitCode::kUnusable, "[data] {} has more than 2^32-1 rows of {} tokens; name a part of it",
         config.path, seq_len);
  return ends;
}

/// File descriptors, closed by the destructor.
struct Descriptors {
  Descriptors() = default;
  ~Descriptors() {
    for (const int descriptor : all) ::close(descriptor);
  }
  Descriptors(const Descriptors&) = delete;
  std::vector<int> all;
};

class TokenFilesReader final : public RowReader {
 public:
  TokenFilesReader(const TokenFilesConfig& config, const RowShape& shape)
      : config_(config),
        shape_(shape),
        files_(find_token_files(config)),
        ends_(row_ends(files_, config, shape.seq_len)),
        row_(shape.vocab_size, static_cast<size_t>(shape.seq_len) + 1, 0) {
    for (const TokenFile& file : files_) {
      const int descriptor = open_regular_file(file.path);
      if (descriptor < 0)
        fail(ExitCode::kUnusable, "[data] cannot read {}: {}", file.path, std::strerror(errno));
      descriptors_.all.push_back(descriptor);
    }
    read_row(0);  // checks that the tokens fit the model at all
  }

  int64_t num_samples() const override { return ends_.back(); }

  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override {
    const auto size = static_cast<size_t>(shape_.seq_len);
    Batch batch = empty_batch(num_sequences, shape_.seq_len, shape_.vocab_size);
    if (config_.eos_token_id) batch.documents.resize(batch.tokens.size());
    for (size_t row = 0; row < samples.size(); ++row) {
      read_row(samples[row]);
      batch.tokens.put(row * size, row_, 0, size);
      batch.targets.put(row * size, row_, 1, size);
      if (config_.eos_token_id) number_documents(std::span(batch.documents).subspan(row * size, size));
    }
    batch.valid_tokens = static_cast<int64_t>(samples.size()) * shape_.seq_len;
    return batch;
  }

 private:
  /// Reads seq_len + 1 tokens into row_.
  void read_row(int64_t sample) {
    const auto file_index =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), sample) - ends_.begin());
    const TokenFile& file = files_[file_index];
    const int64_t row = sample - (file_index == 0 ? 0 : ends_[file_index - 1]);
    const int64_t first = row * stride_of(file, shape_.seq_len);
    bytes_.resize(static_cast<size_t>((shape_.seq_len + 1) * file.token_bytes));
    read_shard(descriptors_.all[file_index], file.begin + first * file.token_bytes, bytes_.data(),
               bytes_.size(), file.path);
    row_.visit([&]<class Id>(std::vector<Id>& ids) { take<Id>(file, first, ids); });
  }

  template <class Id>
  void take(const TokenFile& file, int64_t first, std::span<Id> ids) const {
    if (file.dtype == "uint16") return convert<uint16_t>(file, first, ids);
    if (file.dtype == "uint32") return convert<uint32_t>(file, first, ids);
    if (file.dtype == "int32") return convert<int32_t>(file, first, ids);
    if (file.dtype == "int64") return convert<int64_t>(file, first, ids);
    if (file.dtype == "uint64") return convert<uint64_t>(file, first, ids);
    if (file.dtype == "int16") return convert<int16_t>(file, first, ids);
    return file.dtype == "int8" ? convert<int8_t>(file, first, ids) : convert<uint8_t>(file, first, ids);
  }

  template <class Stored, class Id>
  void convert(const TokenFile& file, int64_t first, std::span<Id> ids) const {
    if (copy_tokens<Stored>(bytes_.data(), shape_.vocab_size, ids)) return;
    const size_t at = first_outside<Stored>(bytes_.data(), shape_.vocab_size);
    fail(ExitCode::kUnusable,
         "[data] token {} at position {} of {} is outside the model's vocabulary of {}; was the data made "
         "with a different tokenizer{}?",
         stored_at<Stored>(bytes_.data(), at), first + static_cast<int64_t>(at), file.path, shape_.vocab_size,
         file.format == TokenFormat::kRaw ? fmt::format(", or has another dtype than {}", file.dtype) : "");
  }

  /// Numbers the documents of the row: the token after an eos begins the next document.
  void number_documents(std::span<int32_t> documents) const {
    row_.visit([&](const auto& ids) {
      int32_t document = 0;
      for (size_t t = 0; t < documents.size(); ++t) {
        documents[t] = document;
        document += ids[t] == *config_.eos_token_id;
      }
    });
  }

  TokenFilesConfig config_;
  RowShape shape_;
  std::vector<TokenFile> files_;
  std::vector<int64_t> ends_;  // end of each file, in rows
  Descriptors descriptors_;
  std::string bytes_;
  TokenArray row_;  // seq_len + 1
};

}  // namespace

std::unique_ptr<RowReader> open_token_files(const TokenFilesConfig& config, const RowShape& shape) {
  return std::make_unique<TokenFilesReader>(config, shape);
}

int64_t count_token_file_rows(const TokenFilesConfig& config, int64_t seq_len) {
  return row_ends(find_token_files(config), config, seq_len).back();
}

}  // namespace tycho
