// Finetuning data as rows: packing against LLM Foundry, what is cut and left out, order and resume.
#include "trainer/data/chat/chat_dataset.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/chat_rows.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class ChatDatasetTest : public ::testing::Test {
 protected:
  ChatDatasetTest() { config_.path = temp_ / "rows.jsonl"; }

  std::string pair(const std::string& prompt, const std::string& response) const {
    return Json{{"prompt", prompt}, {"response", response}}.dump() + "\n";
  }
  /// Row i has i % 7 + 1 words, and says which one it is.
  void write_rows(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      std::string words;
      for (int w = 0; w <= i % 7; ++w) words += " rate";
      text += pair("row " + std::to_string(i) + words, words);
    }
    write_text(config_.path, text);
  }
  ChatDataset open() const { return ChatDataset(config_, shape_, never_stopped); }
  void expect_unusable(std::initializer_list<std::string_view> parts) const {
    expect_error(ExitCode::kUnusable, parts, [&] { open(); });
  }

  TempDir temp_;
  ChatConfig config_;
  RowShape shape_{.seq_len = 64, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(ChatDatasetTest, PacksARowAsLlmFoundryDoes) {
  int compared = 0;
  for (const Json& wanted : Json::parse(read_file(golden("chat/cases.json")))) {
    if (wanted.at("packed").is_null()) continue;
    std::string text;
    for (const std::string line : wanted.at("rows")) text += line + "\n";
    write_text(config_.path, text);
    config_.pack = true;
    if (wanted.at("template") == "llama3") config_.chat_template = "llama3";
    if (wanted.at("target_prompts") == "all") config_.target_prompts = TargetPrompts::kAll;
    shape_ = {wanted.at("seq_len"), 512, golden(wanted.at("tokenizer"))};
    const ChatDataset data = open();
    ASSERT_EQ(data.num_rows(), 1);
    const Batch batch = data.read_batch(std::vector<uint32_t>{0}, 1);
    const Json& packed = wanted.at("packed");
    EXPECT_EQ(batch.tokens.widened(), packed.at("input_ids").get<std::vector<int32_t>>());
    // Labels there stand at the token itself; the model shifts them. Filler is -1 there, the last document
    // here.
    auto targets = packed.at("labels").get<std::vector<int32_t>>();
    std::rotate(targets.begin(), targets.begin() + 1, targets.end());
    targets.back() = kNoTarget;
    EXPECT_EQ(batch.targets.widened(), targets);
    auto documents = packed.at("sequence_id").get<std::vector<int32_t>>();
    const int32_t last = *std::max_element(documents.begin(), documents.end());
    std::replace(documents.begin(), documents.end(), -1, last + 1);
    EXPECT_EQ(batch.documents, documents);
    EXPECT_EQ(batch.valid_tokens,
              std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t != kNoTarget; }));
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

TEST_F(ChatDatasetTest, PackedOrNotTheSameIsLearnt) {
  write_rows(150);  // more than a block of a thread
  const auto pairs = [&](bool pack) {
    config_.pack = pack;
    const ChatDataset data = open();
    std::multiset<std::pair<int32_t, int32_t>> found;
    int64_t valid = 0;
    for (uint32_t row = 0; row < data.num_rows(); ++row) {
      const Batch batch = data.read_batch(std::vector<uint32_t>{row}, 1);
      EXPECT_EQ(batch.documents.empty(), !pack);
      EXPECT_TRUE(std::is_sorted(batch.documents.begin(), batch.documents.end()));
      for (size_t t = 0; t < batch.tokens.size(); ++t) {
        if (batch.targets[t] == kNoTarget) continue;
        EXPECT_EQ(batch.targets[t], batch.tokens[t + 1]);
        EXPECT_TRUE(!pack || batch.documents[t] == batch.documents[t + 1]);
        found.emplace(batch.tokens[t], batch.targets[t]);
      }
      valid += batch.valid_tokens;
    }
    EXPECT_EQ(static_cast<int64_t>(found.size()), valid);
    EXPECT_EQ(data.num_rows() == 150, !pack);
    return found;
  };
  EXPECT_EQ(pairs(true), pairs(false));
}

/// What a model sees of a row is the same: padding is a document of its own.
TEST_F(ChatDatasetTest, FilledUpOnTheLeftRowsEndWhereTheyEndOnTheRight) {
  write_rows(30);
  for (const bool pack : {false, true}) {
    config_.pack = pack;
    config_.padding_side = PaddingSide::kRight;
    const ChatDataset right = open();
    config_.padding_side = PaddingSide::kLeft;
    const ChatDataset left = open();
    ASSERT_EQ(left.num_rows(), right.num_rows());
    int64_t full = 0;
    for (uint32_t row = 0; row < left.num_rows(); ++row) {
      const Batch wanted = right.read_batch(std::vector<uint32_t>{row}, 1);
      const Batch given = left.read_batch(std::vector<uint32_t>{row}, 1);
      if (given.documents == wanted.documents) {
        ++full;
        EXPECT_EQ(given.tokens, wanted.tokens);
        continue;
      }
      int64_t padding = 0;
      while (given.documents[static_cast<size_t>(padding)] == 0) ++padding;
      ASSERT_TRUE(padding > 0 && padding < 64);
      for (const auto ids : {&Batch::tokens, &Batch::targets}) {
        std::vector<int32_t> moved = (wanted.*ids).widened();
        std::rotate(moved.begin(), moved.end() - padding, moved.end());
        EXPECT_EQ((given.*ids).widened(), moved);
      }
      EXPECT_EQ(given.valid_tokens, wanted.valid_tokens);
      EXPECT_TRUE(std::is_sorted(given.documents.begin(), given.documents.end()));
      for (size_t t = 0; pack && t + static_cast<size_t>(padding) < 64; ++t)
        EXPECT_EQ(given.documents[t + static_cast<size_t>(padding)], wanted.documents[t] + 1);
      EXPECT_EQ(given.documents.back(), pack ? wanted.documents[63 - static_cast<size_t>(padding)] + 1 : 1);
    }
    EXPECT_LT(full, left.num_rows());
  }
}

/// A trimmed row is an untrimmed one without its padding, on either side.
TEST_F(ChatDatasetTest, TrimmedRowsLosePaddingAlone) {
  write_rows(30);
  for (const PaddingSide side : {PaddingSide::kRight, PaddingSide::kLeft}) {
    config_.padding_side = side;
    const ChatDataset data = open();
    const std::vector<int32_t> lengths = data.row_lengths();
    ASSERT_EQ(std::ssize(lengths), data.num_rows());
    for (uint32_t row = 0; row < data.num_rows(); ++row)
      for (const int64_t width : {int64_t{lengths[row]}, int64_t{lengths[row] + 5}, shape_.seq_len}) {
        if (width > shape_.seq_len) continue;
        const Batch whole = data.read_batch(std::vector<uint32_t>{row}, 2);
        const Batch trimmed = data.read_batch(std::vector<uint32_t>{row}, 2, width);
        EXPECT_EQ(trimmed.seq_len, width);
        EXPECT_EQ(trimmed.valid_tokens, whole.valid_tokens);
        const size_t lost = static_cast<size_t>(shape_.seq_len - width);
        const size_t begin = side == PaddingSide::kLeft ? lost : 0;
        ASSERT_EQ(trimmed.tokens.size(), 2 * static_cast<size_t>(width));
        for (size_t t = 0; t < static_cast<size_t>(width); ++t) {
          EXPECT_EQ(trimmed.tokens[t], whole.tokens[begin + t]);
          EXPECT_EQ(trimmed.targets[t], whole.targets[begin + t]);
          // Padding is a document of its own, where there is any.
          if (!trimmed.documents.empty() && width > lengths[row]) {
            EXPECT_EQ(trimmed.documents[t], whole.documents[begin + t]);
          }
        }
        for (size_t t = static_cast<size_t>(width); t < 2 * static_cast<size_t>(width); ++t)
          EXPECT_EQ(trimmed.targets[t], kNoTarget);
      }
  }
}

TEST_F(ChatDatasetTest, TrimmedBatchesAreTheSameOnAnyNumberOfRanksAndAfterAResume) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += pair("row " + std::to_string(i) + ":", std::string(static_cast<size_t>(1 + i * 29 % 230), '7'));
  write_text(config_.path, text);
  shape_.seq_len = 256;
  config_.trim_padding = true;
  const auto loader_of = [&](int64_t rank, int64_t ranks, const DataCursor& cursor) {
    return make_loader({{config_}},
                       {.seq_len = 256,
                        .global_sequences = 4,
                        .rank = rank,
                        .num_ranks = ranks,
                        .vocab_size = 512,
                        .seed = 17,
                        .tokenizer = shape_.tokenizer},
                       cursor, {});
  };
  std::map<int64_t, int64_t> widths;  // together, by bucket_batches
  for (const int64_t window : {1, 5}) {
    config_.bucket_batches = window;
    const auto loader = loader_of(0, 1, {});
    std::multiset<std::vector<int32_t>> seen;
    for (int i = 0; i < 26; ++i) {
      const DataCursor cursor = loader->cursor();
      const Batch whole = loader->next();
      if (cursor.epoch == 0) widths[window] += whole.seq_len;
      EXPECT_EQ(whole.seq_len % 64, 0);
      const std::vector<int32_t> tokens = whole.tokens.widened();
      for (int64_t b = 0; b < 4; ++b)
        if (cursor.epoch == 0)
          seen.emplace(tokens.begin() + b * whole.seq_len, tokens.begin() + b * whole.seq_len + 12);
      for (const int64_t ranks : {1, 2, 4})
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const Batch part = loader_of(rank, ranks, cursor)->next();
          EXPECT_EQ(part.seq_len, whole.seq_len);
          const int64_t size = 4 / ranks * whole.seq_len;
          EXPECT_EQ(part.tokens.widened(),
                    std::vector<int32_t>(tokens.begin() + rank * size, tokens.begin() + (rank + 1) * size));
        }
    }
    EXPECT_EQ(seen.size(), 48u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 48u);  // each row of an epoch once
  }
  EXPECT_LT(widths.at(5), widths.at(1));
  EXPECT_LT(widths.at(1), 12 * 256);
  const ChatRows rows =
      chat_rows(open_chat_dataset(config_, shape_, {}), {.global_sequences = 4, .seed = 17});
  const ChatDataset data = open();
  int64_t tokens = 0, left_out = 0;
  for (const int32_t length : data.lengths()) tokens += length;
  std::vector<uint32_t> order(50);
  data_order({{config_}}, {{50}}, {.global_sequences = 4, .seed = 17}).epoch(0)->read(order);
  for (size_t i = 48; i < 50; ++i) left_out += data.lengths()[order[i]];
  EXPECT_DOUBLE_EQ(rows.padding,
                   1 - static_cast<double>(tokens - left_out) / static_cast<double>(4 * widths.at(5)));
  EXPECT_NE(rows.summary().find("50 rows of 64 to 256 tokens in the first epoch, "), std::string::npos)
      << rows.summary();
}

TEST_F(ChatDatasetTest, ReadersOfTheSameFileKeepTheirOwnConfigs) {
  write_rows(9);
  const auto trimmed = [&](bool trim) {
    ChatConfig config = config_;
    config.trim_padding = trim;
    return open_rows({{config}}, shape_, {});
  };
  const auto whole = trimmed(false), narrow = trimmed(true), again = trimmed(false);
  EXPECT_TRUE(whole->trimmed_lengths().empty());
  EXPECT_EQ(narrow->trimmed_lengths().size(), 9u);
  EXPECT_TRUE(again->trimmed_lengths().empty());
}

TEST_F(ChatDatasetTest, RowsWithoutASampleHaveNoTarget) {
  write_rows(3);
  for (const bool pack : {false, true}) {
    config_.pack = pack;
    const Batch batch = open().read_batch(std::vector<uint32_t>{0}, 3);
    EXPECT_EQ(batch.tokens.size(), 3u * 64);
    for (size_t t = 64; t < 3 * 64; ++t) EXPECT_EQ(batch.targets[t], kNoTarget);
    EXPECT_EQ(batch.documents.size(), pack ? 3u * 64 : 0u);
  }
}

TEST_F(ChatDatasetTest, CountsWhatIsCutAndLeftOut) {
  const std::string many(400, '7');
  write_text(config_.path, pair("a", "b") + "\n  \n" + pair("a", many) + pair(many, "b"));
  const ChatDataset data = open();
  EXPECT_EQ(data.num_rows(), 2);
  ASSERT_EQ(data.warnings().size(), 2u);
  // Each of the long examples has 400 digits, which are tokens of their own.
  const double lost = 100.0 * (2 * (1 + 400 + 1 - 64)) / (3 + 2 * (1 + 400 + 1));
  EXPECT_EQ(data.warnings()[0],
            "1 of 3 examples of " + config_.path +
                fmt::format(" are longer than seq_len = 64 and are cut: of all tokens, {:.1f} % "
                            "are lost by cuts",
                            lost));
  EXPECT_EQ(data.warnings()[1],
            "1 of 3 examples of " + config_.path + " have no target within seq_len = 64 and are dropped");
  EXPECT_EQ(data.num_cut(), 1);
  EXPECT_EQ(data.num_dropped(), 1);
  write_text(config_.path, pair(many, "b"));
  expect_unusable({"[data] none of the 1 examples of " + config_.path, "seq_len = 64", "raise seq_len"});
}

TEST_F(ChatDatasetTest, SaysWhenATemplateIsTextToTheTokenizer) {
  shape_.seq_len = 128;
  write_text(config_.path,
             R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})");
  const ChatDataset data = open();
  ASSERT_EQ(data.warnings().size(), 1u);
  EXPECT_NE(data.warnings()[0].find("<|im_start|> and <|im_end|> are not in the tokenizer's vocabulary"),
            std::string::npos);
}

TEST_F(ChatDatasetTest, ReadsAFolderSortedByPath) {
  write_text(temp_ / "all/b.jsonl", pair("second", "b"));
  write_text(temp_ / "all/a.jsonl", pair("first", "a"));
  write_text(temp_ / "all/c.txt", "not read");
  config_.path = temp_ / "all";
  const ChatDataset data = open();
  ASSERT_EQ(data.num_rows(), 2);
  const Batch batch = data.read_batch(std::vector<uint32_t>{0}, 1);
  const auto tokenizer = load_tokenizer(shape_.tokenizer);
  EXPECT_EQ(tokenizer->decode(batch.tokens.widened()).substr(0, 20), "firsta<|endoftext|><");
}

TEST_F(ChatDatasetTest, NamesTheFirstWrongLineWhicheverThreadMeetsIt) {
  write_rows(300);
  std::string text = read_file(config_.path);
  config_.path = temp_ / "wrong.jsonl";
  write_text(config_.path, text + "\n{}\n" + text + "{}\n");
  for (int i = 0; i < 5; ++i)
    expect_unusable({"[" + config_.path + ":302] must have exactly the key \"messages\""});
}

TEST_F(ChatDatasetTest, RefusesWhatCannotBeRead) {
  expect_unusable({config_.path});
  write_text(config_.path, " \n\n");
  expect_unusable({"[data] " + config_.path + " has no rows"});
  write_rows(2);
  shape_.vocab_size = 400;
  expect_unusable({"lines.json has 494 tokens, the model's vocabulary 400", "set vocab_size to 494"});
  shape_.tokenizer.clear();
  expect_unusable({"[data] " + config_.path + " is text, but there is no tokenizer"});
}

/// A hole in a file reads as zeros and takes no room on the disk.
TEST_F(ChatDatasetTest, ALineOfHundredsOfMegabytesIsNamed) {
  write_text(config_.path, pair("a", "b"));
  std::filesystem::resize_file(config_.path, 300 << 20);
  expect_unusable({config_.path + ":2 is longer than 256 MiB", "one JSON object per line"});
}

TEST_F(ChatDatasetTest, AStopEndsTheTokenising) {
  write_rows(300);
  const std::atomic<int> stop = SIGINT;
  try {
    ChatDataset(config_, shape_, stop);
    FAIL() << "tokenised to the end";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 130);
    EXPECT_NE(std::string(error.what()).find("stopped by SIGINT while"), std::string::npos) << error.what();
  }
}

TEST_F(ChatDatasetTest, IsReadOnceByWhatSharesItWhileItsFilesAreUnchanged) {
  write_rows(4);
  const OpenedData opened;
  const auto data = open_chat_dataset(config_, shape_, opened);
  EXPECT_EQ(open_chat_dataset(config_, shape_, opened), data);
  EXPECT_EQ(count_samples({{config_}}, shape_, opened), 4);
  EXPECT_EQ(data.use_count(), 2) << "one is held here, one in `opened`";
  EXPECT_NE(open_chat_dataset(config_, shape_, {}), data);
  ChatConfig packed = config_;
  packed.pack = true;
  EXPECT_NE(open_chat_dataset(packed, shape_, opened), data);
  write_rows(5);
  EXPECT_EQ(open_chat_dataset(config_, shape_, opened)->num_rows(), 5);
  EXPECT_EQ(data->num_rows(), 4);
}

TEST_F(ChatDatasetTest, ALoaderResumesAtEveryPosition) {
  write_rows(90);
  config_.pack = true;
  const LoaderShape shape{
      .seq_len = 64, .global_sequences = 4, .vocab_size = 512, .seed = 17, .tokenizer = shape_.tokenizer};
  const auto loader = make_loader({{config_}}, shape, {}, {});
  const int64_t rows = open().num_rows();
  ASSERT_GT(rows, 8);
  EXPECT_EQ(loader->samples_per_epoch(), rows / 4 * 4);
  std::set<int64_t> epochs;
  for (int64_t i = 0; i < rows; ++i) {
    const DataCursor cursor = loader->cursor();
    epochs.insert(cursor.epoch);
    const Batch expected = loader->next();
    const Batch again = make_loader({{config_}}, shape, cursor, {})->next();
    EXPECT_EQ(again.tokens, expected.tokens);
    EXPECT_EQ(again.targets, expected.targets);
    EXPECT_EQ(again.documents, expected.documents);
  }
  EXPECT_GT(epochs.size(), 2u);
}

}  // namespace
}  // namespace tycho
