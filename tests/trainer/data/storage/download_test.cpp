// Downloads from a server that fails in every way that servers do.
#include "trainer/data/storage/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/storage/http_server.h"
#include "trainer/data/storage/open_remote_files.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::HttpServer;
using testing::SeenRequest;
using testing::ServerReply;
using testing::TempDir;
using testing::write_text;

std::string letters(size_t count, char first = 'a') {
  std::string text(count, ' ');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>(first + i * 7 % 26);
  return text;
}

class DownloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(temp_ / "www/data/x.bin", text_);
    ::setenv("no_proxy", "127.0.0.1", 1);
  }
  ~DownloadTest() override { ::close(target_.descriptor); }

  bool fetch(const std::string& name = "x.bin") {
    const auto files = open_remote_files(parse_remote(server_.url() + "/data"), sas_env_);
    if (target_.descriptor >= 0) ::close(target_.descriptor);
    target_ = {::open((temp_ / "out").c_str(), O_RDWR | O_CREAT, 0600), temp_ / "out", have_, most_bytes_};
    return download(*files, name, target_, policy_, stop_.get_token());
  }
  void expect_failure(std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { fetch(); });
  }
  /// The first `times` requests get this.
  void fail_times(int times, const ServerReply& reply) {
    server_.set_fault([reply, left = std::make_shared<std::atomic<int>>(times)](const SeenRequest&) {
      return left->fetch_sub(1) > 0 ? std::optional(reply) : std::nullopt;
    });
  }

  TempDir temp_;
  std::string text_ = letters(300'000), sas_env_;
  HttpServer server_{temp_ / "www"};
  DownloadPolicy policy_{.retries = 3, .timeout_s = 1, .first_wait_s = 0.01};
  DownloadTarget target_;
  int64_t have_ = 0, most_bytes_ = 400'000;
  std::stop_source stop_;
};

TEST_F(DownloadTest, FetchesAFileAndNoticesAnAbsentOne) {
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), text_);
  EXPECT_FALSE(fetch("absent"));
  write_text(temp_ / "www/data/empty", "");
  ASSERT_EQ(::truncate((temp_ / "out").c_str(), 0), 0);
  EXPECT_TRUE(fetch("empty"));
  EXPECT_EQ(target_.num_bytes, 0);
}

TEST_F(DownloadTest, ContinuesAfterTheBytesThatHaveArrived) {
  fail_times(2, {.cut_at = 100'000});
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), text_);
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].headers.at("range"), "bytes=100000-");
  EXPECT_FALSE(requests[1].headers.at("if-range").empty());
  EXPECT_EQ(requests[2].headers.at("range"), "bytes=200000-");
}

TEST_F(DownloadTest, StartsOverWhenTheFileHasChangedOrTheServerHasNoRanges) {
  const std::string newer = letters(300'000, 'A');
  server_.set_fault(
      [&, n = std::make_shared<std::atomic<int>>(0)](const SeenRequest&) -> std::optional<ServerReply> {
        if (n->fetch_add(1) == 0) return ServerReply{.cut_at = 100'000};
        write_text(temp_ / "www/data/x.bin", newer);
        return std::nullopt;
      });
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), newer);
  server_.set_fault([n = std::make_shared<std::atomic<int>>(0)](const SeenRequest&) {
    return ServerReply{.cut_at = n->fetch_add(1) == 0 ? 100'000 : -1, .ranges = false};
  });
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), newer);
}

TEST_F(DownloadTest, StartsOverWhenTheFileHasBecomeShorter) {
  write_text(temp_ / "out", letters(350'000));
  have_ = 350'000;
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), text_);
}

TEST_F(DownloadTest, RetriesTemporaryErrorsAndThenNamesFileAndReason) {
  for (const int status : {500, 503, 429, 408}) {
    fail_times(3, {status, "busy"});
    EXPECT_TRUE(fetch()) << status;
    fail_times(4, {status, "busy"});
    expect_failure({server_.url() + "/data/x.bin", fmt::format("answers {} (busy)", status), "4 tries",
                    "download_retry"});
  }
}

TEST_F(DownloadTest, DoesNotRetryPermanentErrors) {
  fail_times(1, {403, "<Error><Code>AccessDenied</Code><Message>No</Message></Error>"});
  expect_failure({"answers 403 (AccessDenied: No)", "credentials"});
  fail_times(1, {400, "bad"});
  expect_failure({"answers 400"});
  EXPECT_EQ(server_.count("/data/x.bin"), 2);
}

TEST_F(DownloadTest, AskedForARangeThatIsNotThereStartsOverOrNamesTheServer) {
  write_text(temp_ / "out", letters(100'000, 'q'));
  have_ = 100'000;
  fail_times(1, {416, "no such range"});
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), text_);
  EXPECT_FALSE(server_.requests().back().headers.contains("range"));
  fail_times(99, {416, "no such range"});
  expect_failure({server_.url() + "/data/x.bin", "answers 416 (no such range)"});
}

TEST_F(DownloadTest, GivesUpOnAServerThatAlwaysCutsOff) {
  fail_times(99, {.cut_at = 0});
  expect_failure({server_.url() + "/data/x.bin", "4 tries"});
  EXPECT_EQ(server_.count("/data/x.bin"), 4);
}

TEST_F(DownloadTest, AFileThatIsNoLongerThereIsAbsent) {
  for (const int status : {404, 410}) {
    fail_times(1, {status, "gone"});
    EXPECT_FALSE(fetch()) << status;
  }
  EXPECT_EQ(server_.count("/data/x.bin"), 2) << "not tried again";
}

TEST_F(DownloadTest, GivesUpOnAServerThatHangs) {
  policy_.retries = 1;
  fail_times(10, {.body = "late", .hang_s = 20});
  const auto start = std::chrono::steady_clock::now();
  expect_failure({"for 1 s", "2 tries"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST_F(DownloadTest, NamesAServerThatDoesNotAnswer) {
  policy_.retries = 1;
  const auto files = open_remote_files(parse_remote("http://127.0.0.1:1/data"), "");
  target_ = {::open((temp_ / "out").c_str(), O_RDWR | O_CREAT, 0600), temp_ / "out", 0, 100};
  expect_error(ExitCode::kUnusable, {"http://127.0.0.1:1/data/x.bin", "2 tries"},
               [&] { download(*files, "x.bin", target_, policy_, {}); });
}

TEST_F(DownloadTest, FollowsFiveRedirects) {
  const auto redirect = [this](int times) {
    server_.set_fault([this, left = std::make_shared<std::atomic<int>>(times)](const SeenRequest&) {
      return left->fetch_sub(1) > 0
                 ? std::optional(ServerReply{302, "", {"Location: " + server_.url() + "/data/x.bin"}})
                 : std::nullopt;
    });
  };
  redirect(5);
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(temp_ / "out"), text_);
  redirect(6);
  expect_failure({"redirects"});
}

TEST_F(DownloadTest, RefusesAFileThatIsLongerThanTheIndexSays) {
  most_bytes_ = 299'999;
  expect_failure({"longer than the 299999 bytes"});
}

TEST_F(DownloadTest, ReportsAFullDisk) {
  const auto files = open_remote_files(parse_remote(server_.url() + "/data"), "");
  target_ = {::open("/dev/full", O_RDWR), "/dev/full", 0, most_bytes_};
  expect_error(ExitCode::kStorage, {"/dev/full", "cache_limit"},
               [&] { download(*files, "x.bin", target_, policy_, {}); });
  policy_.when_full = "buy a disk";
  expect_error(ExitCode::kStorage, {"/dev/full", "No space left on device; buy a disk"},
               [&] { download(*files, "x.bin", target_, policy_, {}); });
}

TEST_F(DownloadTest, StopsAtOnce) {
  policy_.timeout_s = 60;
  fail_times(10, {.body = "late", .hang_s = 60});
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop_.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  expect_error(ExitCode::kTerminated, {"stopped"}, [&] { fetch(); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(DownloadTest, SendsASasAndNeverShowsIt) {
  sas_env_ = "TYCHO_TEST_SAS";
  expect_failure({"TYCHO_TEST_SAS", "is not set"});
  ::setenv("TYCHO_TEST_SAS", "?sv=2024&sig=hunter22hunter22", 1);
  EXPECT_TRUE(fetch());
  EXPECT_EQ(server_.requests().back().path, "/data/x.bin?sv=2024&sig=hunter22hunter22");
  fail_times(1, {403, "you sent sig=hunter22hunter22"});
  try {
    fetch();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("hunter22"), std::string::npos) << error.what();
  }
}

TEST_F(DownloadTest, SignsRequestsToAnS3EndpointAndSaysWhenItCannot) {
  ::setenv("AWS_ENDPOINT_URL", server_.url().c_str(), 1);
  ::setenv("AWS_CONFIG_FILE", "/nowhere", 1);
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", (temp_ / "keys").c_str(), 1);
  write_text(temp_ / "keys",
             "[other]\naws_access_key_id = no\n[default]\naws_access_key_id = AKID\n"
             "aws_secret_access_key = hunter22\nregion=eu-west-1\n");
  write_text(temp_ / "www/data/a b.bin", text_);
  const auto get = [&](const std::string& name) {
    const auto files = open_remote_files(parse_remote("s3://data"), "");
    if (target_.descriptor >= 0) ::close(target_.descriptor);
    target_ = {::open((temp_ / "out").c_str(), O_RDWR | O_CREAT, 0600), temp_ / "out", 0, most_bytes_};
    return download(*files, name, target_, policy_, {});
  };
  EXPECT_TRUE(get("x.bin"));
  const SeenRequest seen = server_.requests().back();
  EXPECT_EQ(seen.path, "/data/x.bin");
  EXPECT_NE(seen.headers.at("authorization").find("Credential=AKID/"), std::string::npos);
  EXPECT_NE(seen.headers.at("authorization").find("/eu-west-1/s3/aws4_request"), std::string::npos);
  EXPECT_EQ(seen.headers.at("authorization").find("hunter22"), std::string::npos);
  EXPECT_FALSE(get("a b.bin")) << "the test's server does not decode %20";
  EXPECT_EQ(server_.requests().back().path, "/data/a%20b.bin");

  ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
  ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  EXPECT_TRUE(get("x.bin"));
  EXPECT_FALSE(server_.requests().back().headers.contains("authorization"));
  fail_times(1, {403, "no"});
  expect_error(ExitCode::kUnusable, {"s3://data/x.bin", "not signed"}, [&] { get("x.bin"); });
  ::setenv("AWS_PROFILE", "absent", 1);
  expect_error(ExitCode::kUnusable, {"AWS_PROFILE is absent"}, [&] { get("x.bin"); });
  for (const char* name : {"AWS_ENDPOINT_URL", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
                           "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace tycho
