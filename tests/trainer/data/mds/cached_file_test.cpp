// One file of a remote: whole or not at all, and no other than the one that is meant.
#include "trainer/data/mds/cached_file.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/storage/http_server.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/mds/shard_hash.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::HttpServer;
using testing::SeenRequest;
using testing::ServerReply;
using testing::TempDir;
using testing::write_text;

class CachedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("no_proxy", "127.0.0.1", 1); }
  static std::string hash_of(const std::string& text) {
    ShardHasher hasher("sha256");
    hasher.update(text.data(), text.size());
    return "sha256:" + hasher.hex();
  }
  void fetch(const std::string& hash = "") {
    fetch_file(server_.url() + "/x.jsonl", temp_ / "cache/x.jsonl", {hash});
  }
  std::string fetched() const { return read_file(temp_ / "cache/x.jsonl"); }

  TempDir temp_;
  HttpServer server_{temp_ / "www"};
};

TEST_F(CachedFileTest, AFileOfManyBlocksHasTheChecksumOfItsBytes) {
  std::string text;
  for (int i = 0; text.size() < 4'500'000; ++i) text += std::to_string(i) + "\n";
  write_text(temp_ / "www/x.jsonl", text);
  fetch(hash_of(text));
  EXPECT_EQ(fetched(), text);
  fetch(hash_of(text));
  EXPECT_EQ(server_.count("/x.jsonl"), 1);
  std::string damaged = text;
  damaged.back() = ' ';
  write_text(temp_ / "cache/x.jsonl", damaged);
  fetch(hash_of(text));
  EXPECT_EQ(fetched(), text);
  EXPECT_EQ(read_file(temp_ / "cache/x.jsonl.bad"), damaged);
  EXPECT_EQ(server_.count("/x.jsonl"), 2);
}

TEST_F(CachedFileTest, AnotherFileIsFetchedOnceMoreAndThenRefused) {
  write_text(temp_ / "www/x.jsonl", "a\n");
  expect_error(ExitCode::kUnusable,
               {server_.url() + "/x.jsonl was fetched twice and is " + hash_of("a\n"),
                "remote_hash is " + hash_of("b\n"), "cache/x.jsonl.bad", "correct remote_hash"},
               [&] { fetch(hash_of("b\n")); });
  EXPECT_EQ(server_.count("/x.jsonl"), 2);
  EXPECT_EQ(read_file(temp_ / "cache/x.jsonl.bad"), "a\n");
  for (const char* name : {"cache/x.jsonl", "cache/x.jsonl.part"})
    EXPECT_FALSE(std::filesystem::exists(temp_ / name)) << name;
}

TEST_F(CachedFileTest, AFileThatIsThereIsOnlyReplacedByTheRightOne) {
  write_text(temp_ / "www/x.jsonl", "a\n");
  write_text(temp_ / "cache/x.jsonl", "mine\n");
  expect_error(ExitCode::kUnusable, {"was fetched twice"}, [&] { fetch(hash_of("b\n")); });
  EXPECT_EQ(fetched(), "mine\n");
  std::filesystem::remove(temp_ / "www/x.jsonl");
  expect_error(ExitCode::kUnusable, {"/x.jsonl does not exist", "cache/x.jsonl is " + hash_of("mine\n")},
               [&] { fetch(hash_of("b\n")); });
  EXPECT_EQ(fetched(), "mine\n");
}

TEST_F(CachedFileTest, BytesThatWereDamagedOnTheWayAreFetchedAgain) {
  const std::string text(100'000, 'x');
  write_text(temp_ / "www/x.jsonl", text);
  server_.set_fault(
      [left = std::make_shared<std::atomic<int>>(1)](const SeenRequest&) -> std::optional<ServerReply> {
        if (left->fetch_sub(1) <= 0) return std::nullopt;
        return ServerReply{.body = std::string(100'000, 'y'), .ranges = false};
      });
  fetch(hash_of(text));
  EXPECT_EQ(fetched(), text);
  EXPECT_EQ(server_.count("/x.jsonl"), 2);
}

TEST_F(CachedFileTest, ChecksumsThatCannotBeOneAreRefusedBeforeAnythingIsFetched) {
  write_text(temp_ / "www/x.jsonl", "a\n");
  expect_error(ExitCode::kRecipe, {"remote_hash has 3 digits, and sha256 has 64"},
               [&] { fetch("sha256:abc"); });
  expect_error(ExitCode::kUnusable, {"crc99"}, [&] { fetch("crc99:abc"); });
  EXPECT_EQ(server_.count("/x.jsonl"), 0);
}

TEST_F(CachedFileTest, AnAbsentFileIsNamed) {
  std::filesystem::remove(temp_ / "www/x.jsonl");
  expect_error(ExitCode::kUnusable, {"/x.jsonl does not exist: correct remote"}, [&] { fetch(); });
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/x.jsonl"));
}

/// Its keys are those of t.data.text and t.data.chat, not of a cache.
TEST_F(CachedFileTest, AServerThatDoesNotAnswerIsNamedWithWhatHelps) {
  server_.set_fault([](const SeenRequest&) { return std::optional(ServerReply{503, "busy"}); });
  try {
    fetch_file(server_.url() + "/x.jsonl", temp_ / "cache/x.jsonl", {}, {}, {.retries = 0});
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("put the file where path says yourself"), std::string::npos) << text;
    EXPECT_EQ(text.find("download_retry"), std::string::npos) << text;
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
  }
}

TEST_F(CachedFileTest, ADownloadThatBreaksIsNotTakenForTheFile) {
  const std::string text(100'000, 'x');
  write_text(temp_ / "www/x.jsonl", text);
  server_.set_fault(
      [left = std::make_shared<std::atomic<int>>(1)](const SeenRequest&) -> std::optional<ServerReply> {
        if (left->fetch_sub(1) <= 0) return std::nullopt;
        return ServerReply{.body = std::string(100'000, 'x'), .headers = {}, .cut_at = 40'000};
      });
  fetch();
  EXPECT_EQ(fetched(), text);
  EXPECT_GE(server_.count("/x.jsonl"), 2);
}

TEST_F(CachedFileTest, ThreadsThatWantItAtOnceFetchItOnce) {
  write_text(temp_ / "www/x.jsonl", std::string(300'000, 'y'));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) threads.emplace_back([this] { fetch(); });
  }
  EXPECT_EQ(fetched().size(), 300'000u);
  EXPECT_EQ(server_.count("/x.jsonl"), 1);
}

TEST_F(CachedFileTest, TextsOfARemoteAreThoseOfTheFile) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "{\"text\": \"line " + std::to_string(i) + " of a text\"}\n";
  write_text(temp_ / "www/x.jsonl", lines);
  const RowShape shape{.seq_len = 16, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
  TextConfig local, remote;
  local.path = temp_ / "www/x.jsonl";
  remote.path = temp_ / "cache/x.jsonl";
  remote.remote = server_.url() + "/x.jsonl";
  remote.remote_hash = hash_of(lines);
  const auto wanted = open_text_dataset(local, shape, {}), given = open_text_dataset(remote, shape, {});
  ASSERT_EQ(given->num_rows(), wanted->num_rows());
  const std::vector<uint32_t> rows = {0, 3, 7};
  EXPECT_EQ(given->read_batch(rows, 3).tokens, wanted->read_batch(rows, 3).tokens);
  EXPECT_EQ(server_.count("/x.jsonl"), 1);
}

TEST_F(CachedFileTest, SeveralFilesOfAFolderAreReadInTheOrderThatIsWritten) {
  for (const std::string name : {"a", "b"}) {
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += "{\"text\": \"line " + std::to_string(i) + " of " + name + "\"}\n";
    write_text(temp_ / ("www/en/" + name + ".jsonl"), lines);
  }
  write_text(temp_ / "both.jsonl", read_file(temp_ / "www/en/b.jsonl") + read_file(temp_ / "www/en/a.jsonl"));
  const RowShape shape{.seq_len = 16, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
  TextConfig local, remote;
  local.path = temp_ / "both.jsonl";
  remote.path = temp_ / "cache";
  remote.remote = server_.url() + "/en/";
  remote.remote_files = {"b.jsonl", "a.jsonl"};
  const auto wanted = open_text_dataset(local, shape, {}), given = open_text_dataset(remote, shape, {});
  ASSERT_EQ(given->num_rows(), wanted->num_rows());
  for (uint32_t row = 0; row < wanted->num_rows(); ++row)
    ASSERT_EQ(given->read_batch(std::array{row}, 1).tokens, wanted->read_batch(std::array{row}, 1).tokens);
  for (const char* path : {"/en/a.jsonl", "/en/b.jsonl"}) EXPECT_EQ(server_.count(path), 1);
  remote.remote_hashes = {hash_of(read_file(temp_ / "www/en/b.jsonl")), hash_of("another")};
  expect_error(ExitCode::kUnusable,
               {"/en/a.jsonl was fetched twice", "remote_hashes[2] is " + hash_of("another")},
               [&] { open_text_dataset(remote, shape, {}); });
  EXPECT_EQ(server_.count("/en/b.jsonl"), 1);
  remote.remote_hashes.clear();
  remote.remote_files = {"c.jsonl"};
  expect_error(ExitCode::kUnusable, {"/en/c.jsonl does not exist"},
               [&] { open_text_dataset(remote, shape, {}); });
}

TEST_F(CachedFileTest, AFolderWithoutNamesIsRefusedAndLeavesNothing) {
  const RowShape shape{.seq_len = 16, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
  TextConfig text;
  text.path = temp_ / "cache/texts";
  text.remote = temp_ / "www";
  write_text(temp_ / "www/x.jsonl", "{}\n");
  expect_error(ExitCode::kUnusable, {"is a folder: name the files to fetch in remote_files"},
               [&] { open_text_dataset(text, shape, {}); });
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache"));
}

}  // namespace
}  // namespace tycho
