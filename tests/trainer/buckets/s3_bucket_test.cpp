// S3 with a stand-in in this process: every case of all stores, faults of each request, and kills.
#include "trainer/buckets/s3_bucket.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/trainer/buckets/bucket_conformance.h"
#include "tests/trainer/buckets/s3_server.h"
#include "trainer/buckets/open_bucket.h"

namespace tycho::testing {
namespace {

constexpr int64_t kPart = 1000;
const RequestTries kQuick = {.retries = 3, .stall_s = 20, .first_wait_s = 0.001, .longest_wait_s = 0.01};

void use_server(const std::string& url) {
  ::setenv("no_proxy", "127.0.0.1", 1);
  ::setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test", 1);
  ::unsetenv("AWS_SESSION_TOKEN");
  ::unsetenv("AWS_PROFILE");
  ::setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
  ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  ::setenv("S3_ENDPOINT_URL", url.c_str(), 1);
}

class S3Place final : public BucketPlace {
 public:
  S3Place() { use_server(server.url()); }
  ~S3Place() override { EXPECT_EQ(server.num_unknown(), 0); }
  std::unique_ptr<Bucket> open() override {
    return open_bucket(parse_remote("s3://bucket/some prefix"), kQuick);
  }
  void leave_unfinished(const std::string& name) override {
    // The second part is never answered, as if the process had been killed.
    const int first = server.num_requests();
    server.fault = [=](int number) {
      return number >= first + 4 ? StoreFault::kErrorBefore : StoreFault::kNone;
    };
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("tycho-left-{}", ::getpid());
    std::ofstream(path) << std::string(3 * kPart, 'y');
    EXPECT_THROW(open()->put_file(name, path, 3 * kPart, {.part_bytes = kPart, .num_connections = 1}), Error);
    std::filesystem::remove(path);
    server.fault = nullptr;
  }
  int64_t part_bytes() const override { return kPart; }

  S3Server server;
};

INSTANTIATE_TEST_SUITE_P(S3, BucketConformance,
                         ::testing::Values(BucketKind{"StandIn", [] { return std::make_unique<S3Place>(); }}),
                         [](const auto& kind) { return kind.param.name; });

class S3BucketTest : public ::testing::Test {
 protected:
  S3BucketTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "tycho-s3-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i * 7 + i / 256);
    std::ofstream(file(), std::ios::binary) << bytes_;
  }
  ~S3BucketTest() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ + "/file"; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  /// Does each request once and checks what it finds.
  void use(Bucket& bucket) const {
    EXPECT_TRUE(bucket.put("lease", "number 17", PutWhen::kAbsent));
    EXPECT_TRUE(bucket.put("old", "x", PutWhen::kAlways));
    bucket.put_file("shard", file(), size(), {.part_bytes = kPart, .num_connections = 1});
    EXPECT_FALSE(bucket.put("lease", "number 18", PutWhen::kAbsent));
    bucket.remove({"old"});
    ASSERT_EQ(bucket.list("").size(), 2u);
    EXPECT_EQ(bucket.get("lease", 100), "number 17");
    std::string out(100, ' ');
    bucket.read("shard", 950, out);
    EXPECT_EQ(out, bytes_.substr(950, 100));
    EXPECT_TRUE(bucket.get("shard", 1 << 20) == bytes_);
    EXPECT_EQ(bucket.abort_unfinished("", 3600), 0);
  }

  std::string folder_, bytes_ = std::string(4 * kPart + 5, ' ');
};

TEST_F(S3BucketTest, EveryFaultOfEveryRequestIsSurvived) {
  int num_requests = 0;
  {
    S3Place place;
    use(*place.open());
    num_requests = place.server.num_requests();
  }
  ASSERT_GT(num_requests, 15);
  for (const StoreFault fault : {StoreFault::kDropBefore, StoreFault::kDropAfter, StoreFault::kErrorBefore,
                                 StoreFault::kErrorAfter, StoreFault::kSlowDown, StoreFault::kCut})
    for (int number = 0; number < num_requests; ++number) {
      SCOPED_TRACE(fmt::format("fault {} at request {}", static_cast<int>(fault), number));
      S3Place place;
      place.server.fault = [=](int now) { return now == number ? fault : StoreFault::kNone; };
      use(*place.open());
      EXPECT_GT(place.server.num_requests(), num_requests);
      // An upload whose id never arrived stays, and is found.
      const size_t num_left = place.server.num_unfinished();
      EXPECT_LE(num_left, 1u);
      EXPECT_EQ(static_cast<size_t>(place.open()->abort_unfinished("", -3600)), num_left);
    }
}

TEST_F(S3BucketTest, AnUploadThatIsKilledAtAnyRequestContinues) {
  int num_requests = 0;
  {
    S3Place place;
    place.open()->put_file("shard", file(), size(), {.part_bytes = kPart, .num_connections = 1});
    num_requests = place.server.num_requests();
  }
  for (const StoreFault fault : {StoreFault::kDropBefore, StoreFault::kDropAfter})
    for (int number = 0; number < num_requests; ++number) {
      SCOPED_TRACE(fmt::format("fault {} at request {}", static_cast<int>(fault), number));
      S3Place place;
      std::atomic<pid_t> child = 0;
      place.server.fault = [&, killed = false](int now) mutable {
        if (now != number || killed) return StoreFault::kNone;
        killed = true;
        ::kill(child, SIGKILL);
        return fault;
      };
      int gate[2];
      ASSERT_EQ(::pipe(gate), 0);
      child = ::fork();
      if (child == 0) {
        char go = 0;
        if (::read(gate[0], &go, 1) != 1) ::_exit(2);
        place.open()->put_file("shard", file(), size(), {.part_bytes = kPart, .num_connections = 1});
        ::_exit(0);
      }
      ASSERT_EQ(::write(gate[1], "x", 1), 1);
      int status = 0;
      ::waitpid(child, &status, 0);
      ::close(gate[0]), ::close(gate[1]);
      EXPECT_TRUE(WIFSIGNALED(status));
      const auto bucket = place.open();
      int64_t reported = 0;
      bucket->put_file(
          "shard", file(), size(),
          {.part_bytes = kPart, .num_connections = 1, .progress = [&](int64_t n) { reported += n; }});
      EXPECT_EQ(reported, size());
      EXPECT_TRUE(bucket->get("shard", 1 << 20) == bytes_);
      // No part is sent twice, except for the one whose request did not arrive.
      EXPECT_EQ(place.server.num_parts(), 5);
      EXPECT_EQ(place.server.num_unfinished(), 0u);
    }
}

TEST_F(S3BucketTest, AnEqualObjectIsNotSentAgain) {
  S3Place place;
  const auto bucket = place.open();
  bucket->put_file("shard", file(), size(), {.part_bytes = kPart});
  bucket->put_file("shard", file(), size(), {.part_bytes = kPart});
  EXPECT_EQ(place.server.num_parts(), 5);
  // Same size, other bytes.
  std::ofstream(file(), std::ios::binary) << std::string(bytes_.size(), 'z');
  bucket->put_file("shard", file(), size(), {.part_bytes = kPart});
  EXPECT_EQ(place.server.num_parts(), 10);
  EXPECT_EQ(bucket->get("shard", 1 << 20), std::string(bytes_.size(), 'z'));
}

TEST_F(S3BucketTest, PartsOfAnotherFileAreReplaced) {
  S3Place place;
  place.leave_unfinished("shard");
  place.open()->put_file("shard", file(), size(), {.part_bytes = kPart});
  EXPECT_TRUE(place.open()->get("shard", 1 << 20) == bytes_);
  EXPECT_EQ(place.server.num_unfinished(), 0u);
}

TEST_F(S3BucketTest, RefusesAStoreThatIgnoresConditions) {
  S3Place place;
  place.server.ignores_conditions = true;
  try {
    place.open()->put("lease", "1", PutWhen::kAbsent);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find("ignores If-None-Match"), std::string::npos);
  }
}

TEST_F(S3BucketTest, SaysWhatIsWrongWithoutSecrets) {
  S3Place place;
  const auto says = [&](const std::string& uri, ExitCode code, const std::string& text) {
    try {
      open_bucket(parse_remote(uri), kQuick)->put("a", "x", PutWhen::kAlways);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("secret-of-the-test"), std::string::npos);
    }
  };
  says("s3://none/p", ExitCode::kUnusable, "create it first");
  place.server.fault = [](int) { return StoreFault::kSlowDown; };
  says("s3://bucket/p", ExitCode::kStorage, "the store answers 503 (SlowDown: It is SlowDown.) (4 tries in");
  place.server.fault = [](int) { return StoreFault::kDropBefore; };
  says("s3://bucket/p", ExitCode::kStorage, "(4 tries in");
  place.server.fault = nullptr;
  ::unsetenv("AWS_ACCESS_KEY_ID"), ::unsetenv("AWS_SECRET_ACCESS_KEY");
  says("s3://bucket/p", ExitCode::kUnusable, "are the credentials right");
  says("s3://bucket/p", ExitCode::kUnusable, "the request was not signed: neither AWS_ACCESS_KEY_ID");
}

TEST_F(S3BucketTest, CertificatesThatAreNotTrustedAreSaidAtOnce) {
  HttpServer server(folder_);
  use_server("https" + server.url().substr(4));
  ::setenv("AWS_CA_BUNDLE", (folder_ + "/none.pem").c_str(), 1);
  const RequestTries patient{.retries = 6, .first_wait_s = 1000};
  try {
    open_bucket(parse_remote("s3://bucket/p"), patient)->put("a", "x", PutWhen::kAlways, {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
    EXPECT_NE(std::string(error.what()).find("or in AWS_CA_BUNDLE for S3"), std::string::npos)
        << error.what();
  }
  ::unsetenv("AWS_CA_BUNDLE");
}

TEST_F(S3BucketTest, AStopEndsARequestThatHangs) {
  HttpServer server(folder_);
  server.set_fault([](const SeenRequest&) { return ServerReply{.body = "x", .hang_s = 1000}; });
  use_server(server.url());
  const auto bucket = open_bucket(parse_remote("s3://bucket/p"), kQuick);
  std::stop_source stop;
  std::jthread stopper([&] {
    while (server.requests().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop.request_stop();
  });
  try {
    bucket->put("a", "x", PutWhen::kAlways, stop.get_token());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTerminated);
  }
}

}  // namespace
}  // namespace tycho::testing
