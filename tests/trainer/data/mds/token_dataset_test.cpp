// Tokens of every stored type, as ids of both types.
#include "trainer/data/mds/token_dataset.h"

#include <algorithm>
#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;

TEST(TokenDataset, ReadsEveryStoredType) {
  for (const char* name : {"uint16", "untyped", "fixed_shape", "raw_bytes", "shards"}) {
    MdsConfig config{.local_dir = golden("mds"), .split = name, .shuffle = false};
    const auto first = [&](int64_t vocab_size) {
      return make_loader({{config}}, {.seq_len = 10, .global_sequences = 2, .vocab_size = vocab_size}, {})
          ->next();
    };
    const Batch narrow = first(100), wide = first(100'000);
    EXPECT_EQ(narrow.tokens[10], 1) << name;
    EXPECT_TRUE(narrow.tokens.is_narrow() && narrow.targets.is_narrow()) << name;
    EXPECT_FALSE(wide.tokens.is_narrow() || wide.targets.is_narrow()) << name;
    EXPECT_EQ(narrow.tokens.widened(), wide.tokens.widened()) << name;
    EXPECT_EQ(narrow.targets.widened(), wide.targets.widened()) << name;
    const int64_t most = std::ranges::max(narrow.tokens.widened());
    EXPECT_EQ(first(most + 1).tokens, narrow.tokens) << name;
    expect_error(ExitCode::kUnusable,
                 {"token " + std::to_string(most), "vocabulary of " + std::to_string(most)},
                 [&] { first(most); });
  }
  MdsConfig text{.local_dir = golden("mds"), .split = "text_and_id"};
  expect_error(ExitCode::kUnusable, {"no column \"tokens\""},
               [&] { make_loader({{text}}, {.seq_len = 2, .global_sequences = 1, .vocab_size = 100}, {}); });
}

TEST(TokenDataset, NarrowTokensInBytesAreNoReasonForAShorterSequence) {
  const testing::TempDir dir;
  MdsWriter writer(real_files(), dir.path(), {.columns = {{"tokens", "bytes"}}});
  std::vector<int32_t> ids(32);
  std::iota(ids.begin(), ids.end(), 1);
  writer.write({std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0])});
  writer.finish();
  MdsConfig config{.local_dir = dir.path(), .split = ""};
  for (const int64_t seq_len : {16, 32})
    expect_error(
        ExitCode::kUnusable,
        {"expected int64 tokens in a column of bytes, got what looks like int32", "ndarray:int32"},
        [&] { make_loader({{config}}, {.seq_len = seq_len, .global_sequences = 1, .vocab_size = 100}, {}); });
}

}  // namespace
}  // namespace tycho
