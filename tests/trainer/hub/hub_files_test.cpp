// Files of the hub by name: fetched once, verified, found again without a request.
#include "trainer/hub/hub_files.h"

#include "tests/trainer/hub/hub_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/hub/hub_client.h"
#include "trainer/hub/hub_fetch.h"
#include "trainer/hub/hub_hash.h"

namespace tycho {
namespace {

using testing::SeenRequest;
using testing::ServerReply;

class HubFilesTest : public testing::HubFixture {
 protected:
  static std::string large_bytes(int64_t size) {
    std::string bytes(static_cast<size_t>(size), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((i * 2654435761U) >> 13);
    return bytes;
  }
  int count(const std::string& part) const {
    int found = 0;
    for (const std::string& line : server_.requests()) found += line.find(part) != std::string::npos;
    return found;
  }
  int num_left_overs() const {
    int found = 0;
    for (const auto& one : std::filesystem::recursive_directory_iterator(home_))
      found += one.path().string().ends_with(".incomplete");
    return found;
  }
};

TEST_F(HubFilesTest, HashesAreThoseOfGitAndSha256) {
  HubFile file{.path = "x", .num_bytes = 6, .sha256 = "", .git_sha1 = "", .xet_hash = ""};
  HubHasher git(file);
  git.update("hello\n", 6);
  EXPECT_EQ(git.hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
  file.sha256 = "x";
  HubHasher sha(file);
  sha.update("hel", 3);
  sha.update("lo\n", 3);
  EXPECT_EQ(sha.hex(), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
}

TEST_F(HubFilesTest, ASecondUseMakesNoRequest) {
  server_.add_file("models/a/b", "config.json", "{}\n");
  server_.add_file("models/a/b", "sub/tokenizer.json", "[1]");
  server_.add_file("models/a/b", "weights.bin", "large", true);
  EXPECT_EQ(read_file(local_path("hf://a/b/sub/tokenizer.json")), "[1]");
  EXPECT_EQ(read_file(local_path("hf://a/b") + "/weights.bin"), "large");
  const int before = server_.num_requests();
  forget_hub_pins();
  set_hub_access(HubAccess::kCacheOnly);
  EXPECT_EQ(read_file(local_path("hf://a/b@main/config.json")), "{}\n");
  EXPECT_EQ(read_file(local_path("hf://a/b") + "/sub/tokenizer.json"), "[1]");
  EXPECT_EQ(pinned_name("hf://a/b/config.json"),
            "hf://a/b@0123456789abcdef0123456789abcdef01234567/config.json");
  EXPECT_EQ(server_.num_requests(), before);
  EXPECT_EQ(local_path("data/x.json"), "data/x.json");
}

TEST_F(HubFilesTest, CheckingNeverAsksAndSaysWhatToType) {
  set_hub_access(HubAccess::kCacheOnly);
  expect_failure([] { local_path("hf://a/b/config.json"); }, ExitCode::kUnusable,
                 "run  tycho fetch hf://a/b/config.json");
  set_hub_access(HubAccess::kFetch);
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  expect_failure([] { local_path("hf://a/b/config.json"); }, ExitCode::kUnusable, "HF_HUB_OFFLINE is set");
  EXPECT_EQ(server_.num_requests(), 0);
}

TEST_F(HubFilesTest, TheTokenGoesToTheHubAlone) {
  ::setenv("HF_TOKEN", "hf_secretsecret", 1);
  server_.token = "hf_secretsecret";
  server_.add_file("datasets/a/b", "x.jsonl", "1\n");
  server_.add_file("datasets/a/b", "y.parquet", large_bytes(100), true);
  EXPECT_EQ(read_file(local_path("hf://datasets/a/b/y.parquet")), large_bytes(100));
  EXPECT_EQ(read_file(local_path("hf://datasets/a/b/x.jsonl")), "1\n");
  EXPECT_EQ(count("second GET /datasets/a/b/y.parquet"), 1);
  EXPECT_EQ(count("hub HEAD /datasets/a/b/resolve/0123456789abcdef0123456789abcdef01234567/y.parquet token"),
            1);
  ::setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  expect_failure([] { local_path("hf://datasets/a/other"); }, ExitCode::kUnusable,
                 "does not exist, or is private");
}

TEST_F(HubFilesTest, ExpiredAddressesAreAskedForAgainAndNeverShown) {
  const std::string bytes = large_bytes(5 * kHubPieceBytes + 77);
  server_.add_file("models/a/b", "w.bin", bytes, true);
  server_.uses_of_address = 1;
  EXPECT_EQ(read_file(local_path("hf://a/b/w.bin")), bytes);
  EXPECT_GT(count("hub HEAD"), 1);
  server_.add_file("models/a/c", "w.bin", bytes, true);
  server_.uses_of_address = 0;
  try {
    local_path("hf://a/c/w.bin");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("sig0"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("status 403"), std::string::npos) << error.what();
  }
}

TEST_F(HubFilesTest, ContinuesWhereAnEarlierProcessEnded) {
  const std::string bytes = large_bytes(6 * kHubPieceBytes + 5);
  server_.add_file("models/a/b", "w.bin", bytes, true);
  const std::string stuck = "bytes=" + std::to_string(5 * kHubPieceBytes) + "-";
  server_.set_faults({}, [&](const SeenRequest& request) -> std::optional<ServerReply> {
    if (request.headers.at("range").starts_with(stuck)) return ServerReply{400, "broken"};
    return std::nullopt;
  });
  expect_failure([] { local_path("hf://a/b/w.bin"); }, ExitCode::kUnusable, "got status 400");
  const int before = count("second GET");
  EXPECT_EQ(num_left_overs(), 2);
  server_.set_faults({}, {});
  EXPECT_EQ(read_file(local_path("hf://a/b/w.bin")), bytes);
  EXPECT_LT(count("second GET") - before, 7);  // some pieces were there
  EXPECT_EQ(num_left_overs(), 0);
}

TEST_F(HubFilesTest, DamagedFilesAreFetchedAgainAndNeverKept) {
  const std::string bytes = large_bytes(1000);
  server_.add_file("models/a/b", "w.bin", bytes, true);
  int num_damaged = 1;
  server_.set_faults({}, [&](const SeenRequest&) -> std::optional<ServerReply> {
    if (num_damaged-- <= 0) return std::nullopt;
    return ServerReply{206, std::string(1000, 'x'), {"Content-Range: bytes 0-999/1000"}};
  });
  EXPECT_EQ(read_file(local_path("hf://a/b/w.bin")), bytes);
  server_.add_file("models/a/c", "w.bin", bytes + "2", true);
  server_.set_faults({}, [&](const SeenRequest&) -> std::optional<ServerReply> {
    return ServerReply{206, std::string(1001, 'x'), {"Content-Range: bytes 0-1000/1001"}};
  });
  expect_failure([] { local_path("hf://a/c/w.bin"); }, ExitCode::kUnusable, "nothing was kept");
  EXPECT_EQ(num_left_overs(), 0);
  expect_failure(
      [] {
        const auto stream = open_hub_stream(open_hub(parse_hub_name("hf://a/c")), "w.bin");
        char piece[4096];
        while (stream->read(piece, sizeof piece) > 0) continue;
      },
      ExitCode::kUnusable, "the file is damaged");
}

TEST_F(HubFilesTest, StreamsPassThroughAndKeepNothing) {
  const std::string bytes = large_bytes(2 * kHubPieceBytes + 9);
  server_.add_file("datasets/a/b", "train.jsonl", bytes, true);
  const HubSnapshot snapshot = open_hub(parse_hub_name("hf://datasets/a/b"));
  const auto stream = open_hub_stream(snapshot, "train.jsonl");
  std::string got, piece(1 << 20, '\0');
  while (const size_t n = stream->read(piece.data(), piece.size())) got.append(piece, 0, n);
  EXPECT_EQ(got, bytes);
  EXPECT_FALSE(std::filesystem::exists(home_ + "/hub/datasets--a--b/snapshots"));
}

TEST_F(HubFilesTest, WorksWithoutSymbolicLinks) {
  ::setenv("HF_HUB_DISABLE_SYMLINKS", "1", 1);
  server_.add_file("models/a/b", "x/w.bin", large_bytes(100), true);
  const std::string path = local_path("hf://a/b/x/w.bin");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(read_file(path), large_bytes(100));
  const int before = server_.num_requests();
  EXPECT_EQ(local_path("hf://a/b/x/w.bin"), path);
  EXPECT_EQ(read_file(local_path("hf://a/b") + "/x/w.bin"), large_bytes(100));
  EXPECT_EQ(server_.num_requests(), before);
}

TEST_F(HubFilesTest, MovedNamesAreFollowedAndPinsWin) {
  server_.add_file("models/openai-community/gpt2", "config.json", "{}");
  server_.moved["models/gpt2"] = "models/openai-community/gpt2";
  EXPECT_EQ(read_file(local_path("hf://gpt2@main/config.json")), "{}");
  const std::string other(40, 'e');
  pin_hub({{"hf://gpt2@main", other}});
  EXPECT_EQ(pinned_name("hf://gpt2"), "hf://gpt2@" + other);
}

TEST_F(HubFilesTest, RefreshingAsksForTheCommitAgain) {
  server_.add_file("models/a/b", "config.json", "1");
  local_path("hf://a/b/config.json");
  server_.add("models/a/b").commit = std::string(40, 'f');
  server_.add_file("models/a/b", "config.json", "2");
  forget_hub_pins();
  EXPECT_EQ(read_file(local_path("hf://a/b/config.json")), "1");
  forget_hub_pins();
  set_hub_access(HubAccess::kRefresh);
  EXPECT_EQ(read_file(local_path("hf://a/b/config.json")), "2");
}

TEST_F(HubFilesTest, FilesAboveFiftyGigabytesNameTheOfficialClient) {
  server_.add_file("models/a/b", "w.bin", "x", true);
  server_.add("models/a/b").files["w.bin"].shown_bytes = kMostHubBytes + 1;
  expect_failure([] { local_path("hf://a/b/w.bin"); }, ExitCode::kUnusable, "hf download a/b w.bin");
}

TEST_F(HubFilesTest, RefusalsSayWhatToDo) {
  server_.add_file("models/a/b", "config.json", "{}");
  struct Case {
    const char *name, *code;
    int status;
    const char* words;
  };
  for (const Case& one :
       {Case{"hf://a/gated", "GatedRepo", 403, "accept them at"},
        Case{"hf://a/off", "DisabledRepo", 403, "has been disabled"},
        Case{"hf://a/shut", "", 403, "may not be read"}, Case{"hf://a/none", "", 401, "or is private"},
        Case{"hf://a/gone", "RepoNotFound", 404, "or is private"}}) {
    server_.set_faults(
        [&](const SeenRequest&) {
          return std::optional(ServerReply{one.status, "{}", {std::string("X-Error-Code: ") + one.code}});
        },
        {});
    expect_failure([&] { local_path(one.name); }, ExitCode::kUnusable, one.words);
  }
  server_.set_faults({}, {});
  expect_failure([] { local_path("hf://a/b@nope/config.json"); }, ExitCode::kUnusable,
                 "no revision \"nope\"");
  expect_failure([] { local_path("hf://a/b/nope.json"); }, ExitCode::kUnusable, "no such file");
}

TEST_F(HubFilesTest, WaitsAsTheHubSaysAndGivesUpWithCode15) {
  int num_limited = 1;
  server_.add_file("models/a/b", "config.json", "{}");
  server_.set_faults(
      [&](const SeenRequest&) -> std::optional<ServerReply> {
        if (num_limited-- <= 0) return std::nullopt;
        return ServerReply{429, "slow down", {"RateLimit: \"api\";r=0;t=1"}};
      },
      {});
  EXPECT_EQ(read_file(local_path("hf://a/b/config.json")), "{}");
  HttpAnswer answer;
  answer.status = 429, answer.wait_s = 7;
  EXPECT_EQ(hub_wait_s(answer), 7);
  answer.headers = {{"ratelimit", "\"api\";r=0;t=55"}};
  EXPECT_EQ(hub_wait_s(answer), 55);
  HubSettings settings;
  settings.endpoint = "http://127.0.0.1:1";
  const HubClient client(settings, {}, {.retries = 1, .first_wait_s = 0.01});
  expect_failure([&] { (void)client.find_commit(parse_hub_name("hf://a/b")); }, ExitCode::kStorage,
                 "2 tries");
}

TEST_F(HubFilesTest, ACertificateThatIsNotTrustedIsSaidAtOnce) {
  ::setenv("CURL_CA_BUNDLE", "/nowhere/none.pem", 1);
  HubSettings settings;
  settings.endpoint = "https" + server_.url().substr(4);
  const HubClient client(settings, {}, {.retries = 1'000'000, .first_wait_s = 3600});
  expect_failure([&] { (void)client.find_commit(parse_hub_name("hf://a/b")); }, ExitCode::kUnusable,
                 "/nowhere/none.pem: name another file in CURL_CA_BUNDLE");
  ::unsetenv("CURL_CA_BUNDLE");
}

}  // namespace
}  // namespace tycho
