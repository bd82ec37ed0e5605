// Finetuning data as MDS gives the examples of the same rows as JSONL, whatever its columns.
#include "trainer/data/chat/mds_rows.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/mds/mds_array_bytes.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/mds/shard_hash.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

const std::vector<Json> kMessages = {
    Json::parse(R"([{"role": "user", "content": "größe"}, {"role": "assistant", "content": "model"}])"),
    Json::parse(R"([{"role": "system", "content": ""}, {"role": "user", "content": "rate"},
                    {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"},
                    {"role": "assistant", "content": "tensor"}])")};

class MdsRowsTest : public ::testing::Test {
 protected:
  using Rows = std::vector<std::vector<std::string>>;  // values in the order of the columns' names

  /// A data set below `name`; returns its folder.
  std::string write(const std::string& name, const std::vector<MdsColumn>& columns, const Rows& rows,
                    const std::string& compression = "") {
    const std::string dir = temp_ / name;
    std::filesystem::create_directories(dir);
    MdsWriter writer(
        real_files(), dir,
        {.columns = columns, .size_limit = 400, .hashes = {"xxh64"}, .compression = compression});
    for (const auto& row : rows) writer.write(row);
    writer.finish();
    return dir;
  }
  Batch batch_of(const std::string& path, const std::string& remote = "") const {
    ChatConfig config = config_;
    config.path = path;
    config.remote = remote;
    const ChatDataset data(config, shape_, never_stopped);
    std::vector<uint32_t> rows(static_cast<size_t>(data.num_rows()));
    std::iota(rows.begin(), rows.end(), 0u);
    return data.read_batch(rows, data.num_rows());
  }
  void expect_same(const Batch& a, const Batch& b) const {
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.targets, b.targets);
  }
  void expect_unusable(const std::string& dir, std::initializer_list<std::string_view> parts) const {
    expect_error(ExitCode::kUnusable, parts, [&] { batch_of(dir); });
  }
  std::string jsonl(const std::vector<Json>& rows) {
    std::string text;
    for (const Json& row : rows) text += row.dump() + "\n";
    write_text(temp_ / "rows.jsonl", text);
    return temp_ / "rows.jsonl";
  }

  TempDir temp_;
  ChatConfig config_{.target_responses = TargetResponses::kAll};
  RowShape shape_{.seq_len = 128, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(MdsRowsTest, ShardsOfTextThatStreamingWrote) {
  std::vector<Json> rows;
  for (int i = 1; i <= 5; ++i)
    rows.push_back({{"prompt", fmt::format("What is {}?", i)}, {"response", fmt::format("{0} is {0}.", i)}});
  expect_same(batch_of(golden("line_shards/chat")), batch_of(jsonl(rows)));
}

TEST_F(MdsRowsTest, ConversationsAndPromptsAreThoseOfJsonl) {
  std::vector<Json> talks, pairs;
  Rows talk_rows, pair_rows;
  for (int i = 0; i < 40; ++i) {
    const Json& messages = kMessages[static_cast<size_t>(i % 2)];
    talks.push_back({{"messages", messages}});
    talk_rows.push_back({messages.dump()});
    const std::string prompt = "count " + std::to_string(i), response = " é" + std::to_string(2 * i);
    pairs.push_back({{"prompt", prompt}, {"response", response}});
    pair_rows.push_back({prompt, response, "somewhere"});
  }
  const Batch wanted_talks = batch_of(jsonl(talks)), wanted_pairs = batch_of(jsonl(pairs));
  const std::vector<MdsColumn> columns = {{"prompt", "str"}, {"response", "str"}, {"source", "str"}};
  expect_same(batch_of(write("talks", {{"messages", "json"}}, talk_rows)), wanted_talks);
  expect_same(batch_of(write("zipped", {{"messages", "json"}}, talk_rows, "zstd")), wanted_talks);
  expect_same(batch_of(write("pairs", columns, pair_rows)), wanted_pairs);
}

/// LLM Foundry's token data sets: the end of the text is added when they are read.
TEST_F(MdsRowsTest, TokensAreTakenAsTheyAre) {
  const auto tokenizer = load_tokenizer(shape_.tokenizer);
  std::vector<Json> pairs;
  Rows turns, arrays, bytes;
  for (int i = 0; i < 12; ++i) {
    const std::string prompt = "rate " + std::to_string(i), response = " tensor";
    pairs.push_back({{"prompt", prompt}, {"response", response}});
    const std::vector<int32_t> p = tokenizer->encode(prompt), r = tokenizer->encode(response);
    turns.push_back({Json::array({{{"input_ids", p}, {"labels", r}}}).dump()});
    std::vector<std::string> array, raw;
    for (const auto& ids : {p, r}) {
      array.push_back(testing::mds_array_bytes("ndarray:int32", "int32", {std::ssize(ids)}, ids.data()));
      const std::vector<int64_t> wide(ids.begin(), ids.end());
      raw.emplace_back(reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(int64_t));
    }
    arrays.push_back(array);
    bytes.push_back(raw);
  }
  const Batch wanted = batch_of(jsonl(pairs));
  expect_same(batch_of(write("turns", {{"turns", "json"}}, turns)), wanted);
  expect_same(
      batch_of(write("arrays", {{"input_ids", "ndarray:int32"}, {"labels", "ndarray:int32"}}, arrays)),
      wanted);
  expect_same(batch_of(write("bytes", {{"input_ids", "bytes"}, {"labels", "bytes"}}, bytes)), wanted);
}

TEST_F(MdsRowsTest, ARemoteIsReadThroughItsCache) {
  Rows rows;
  for (int i = 0; i < 30; ++i) rows.push_back({kMessages[0].dump()});
  const std::string remote = write("far", {{"messages", "json"}}, rows);
  const Batch wanted = batch_of(remote);
  expect_same(batch_of(temp_ / "cache", remote), wanted);
  EXPECT_TRUE(std::filesystem::exists(temp_ / "cache/index.json"));
  // What is there is not fetched again.
  std::filesystem::remove(remote + "/shard.00000.mds");
  expect_same(batch_of(temp_ / "cache", remote), wanted);
}

TEST_F(MdsRowsTest, ARemoteFileOfLinesIsFetchedOnceAndCompared) {
  const std::string remote = jsonl({{{"messages", kMessages[0]}}, {{"messages", kMessages[1]}}});
  const Batch wanted = batch_of(remote);
  const std::string cached = temp_ / "cache/deep/copy.jsonl";
  config_.remote_hash = "sha256:" + shard_hash("sha256", read_file(remote));
  expect_same(batch_of(cached, remote), wanted);
  EXPECT_EQ(read_file(cached), read_file(remote));
  EXPECT_FALSE(std::filesystem::exists(cached + ".part"));
  // What is there is not fetched again, and still compared.
  std::filesystem::remove(remote);
  expect_same(batch_of(cached, "file://" + remote), wanted);
  write_text(cached, "{}");
  expect_error(ExitCode::kUnusable,
               {"rows.jsonl does not exist", "copy.jsonl is sha256:", ", and remote_hash is sha256:"},
               [&] { batch_of(cached, remote); });
}

TEST_F(MdsRowsTest, ARemoteFileThatIsAnotherOneIsNotKept) {
  const std::string remote = jsonl({{{"messages", kMessages[0]}}});
  const auto refuse = [&](ExitCode code, const std::string& hash,
                          std::initializer_list<std::string_view> parts) {
    config_.remote_hash = hash;
    expect_error(code, parts, [&] { batch_of(temp_ / "copy.jsonl", remote); });
    EXPECT_FALSE(std::filesystem::exists(temp_ / "copy.jsonl"));
    EXPECT_FALSE(std::filesystem::exists(temp_ / "copy.jsonl.part"));
    EXPECT_EQ(read_file(temp_ / "copy.jsonl.bad"), read_file(remote));
  };
  refuse(ExitCode::kUnusable, "md5:00000000000000000000000000000000",
         {"rows.jsonl was fetched twice and is md5:", "correct remote_hash"});
  expect_error(ExitCode::kUnusable, {"none.jsonl does not exist: correct remote"},
               [&] { batch_of(temp_ / "copy.jsonl", temp_ / "none.jsonl"); });
}

TEST_F(MdsRowsTest, SaysWhichSampleIsWrong) {
  expect_unusable(write("a", {{"messages", "json"}}, {{kMessages[0].dump()}, {"[]"}}),
                  {"sample 1 of ", "a/shard.00000.mds", "needs at least two messages"});
  expect_unusable(write("b", {{"prompt", "str"}, {"response", "str"}}, {{"x", ""}}),
                  {"sample 0", "the response is empty"});
  expect_unusable(write("c", {{"prompt", "str"}, {"response", "str"}}, {{"x\xff", "y"}}),
                  {"sample 0", "UTF-8"});
  expect_unusable(write("d", {{"turns", "json"}}, {{R"([{"input_ids": [600], "labels": [1]}])"}}),
                  {"sample 0", "token 600 is outside the model's vocabulary of 512"});
  expect_unusable(write("e", {{"turns", "json"}}, {{R"([{"input_ids": [1]}])"}}), {"sample 0", "\"labels\""});
  expect_unusable(write("f", {{"turns", "json"}}, {{R"([{"input_ids": [1], "labels": []}])"}}),
                  {"sample 0", "has no tokens: leave the sample out"});
  expect_unusable(write("g", {{"tokens", "ndarray:int32"}},
                        {{testing::mds_array_bytes("ndarray:int32", "int32", {1}, "\1\0\0")}}),
                  {"/g has no columns \"messages\"", "use t.data.mds"});
  expect_unusable(write("h", {{"prompt", "bytes"}, {"response", "str"}}, {{"x", "y"}}),
                  {"column \"prompt\"", "has the encoding bytes"});
}

}  // namespace
}  // namespace tycho
