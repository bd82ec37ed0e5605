// Azure with a stand-in in this process: every case of all stores by SAS and by token, faults, kills.
#include "trainer/buckets/azure_bucket.h"

#include "tests/trainer/buckets/azure_server.h"
#include "tests/trainer/buckets/bucket_conformance.h"
#include "trainer/buckets/open_bucket.h"

namespace tycho::testing {
namespace {

constexpr int64_t kPart = 1000;
const RequestTries kQuick = {.retries = 3, .stall_s = 20, .first_wait_s = 0.001, .longest_wait_s = 0.01};

class AzurePlace final : public BucketPlace {
 public:
  explicit AzurePlace(bool by_token = false) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    for (const char* name : {"AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE",
                             "IDENTITY_ENDPOINT", "AZURE_STORAGE_SAS_TOKEN"})
      ::unsetenv(name);
    ::setenv("AZURE_STORAGE_SERVICE_ENDPOINT", (server.url() + "/account").c_str(), 1);
    machine_.set_fault([](const SeenRequest&) {
      return ServerReply{.body = R"({"access_token": "token-of-the-test", "expires_in": "3600"})",
                         .is_whole = true};
    });
    ::setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", machine_.url().c_str(), 1);
    if (!by_token) ::setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2021&sig=sas-of-the-test", 1);
  }
  ~AzurePlace() override { EXPECT_EQ(server.num_unknown(), 0); }
  std::unique_ptr<Bucket> open() override {
    return open_bucket(parse_remote("az://account/container/some prefix"), kQuick);
  }
  void leave_unfinished(const std::string& name) override {
    const int first = server.num_requests();
    server.fault = [=](int number) {
      return number >= first + 3 ? StoreFault::kErrorBefore : StoreFault::kNone;
    };
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("tycho-left-{}", ::getpid());
    std::ofstream(path) << std::string(3 * kPart, 'y');
    EXPECT_THROW(open()->put_file(name, path, 3 * kPart, {.part_bytes = kPart, .num_connections = 1}), Error);
    std::filesystem::remove(path);
    server.fault = nullptr;
  }
  int64_t part_bytes() const override { return kPart; }

  AzureServer server;

 private:
  HttpServer machine_{"/nonexistent"};
};

INSTANTIATE_TEST_SUITE_P(
    Azure, BucketConformance,
    ::testing::Values(BucketKind{"BySas", [] { return std::make_unique<AzurePlace>(false); }},
                      BucketKind{"ByToken", [] { return std::make_unique<AzurePlace>(true); }}),
    [](const auto& kind) { return kind.param.name; });

class AzureBucketTest : public ::testing::Test {
 protected:
  AzureBucketTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "tycho-azure-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i * 7 + i / 256);
    std::ofstream(file(), std::ios::binary) << bytes_;
  }
  ~AzureBucketTest() override { std::filesystem::remove_all(folder_); }
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

TEST_F(AzureBucketTest, EveryFaultOfEveryRequestIsSurvived) {
  int num_requests = 0;
  {
    AzurePlace place;
    use(*place.open());
    num_requests = place.server.num_requests();
  }
  ASSERT_GT(num_requests, 15);
  for (const StoreFault fault : {StoreFault::kDropBefore, StoreFault::kDropAfter, StoreFault::kErrorBefore,
                                 StoreFault::kErrorAfter, StoreFault::kSlowDown, StoreFault::kCut})
    for (int number = 0; number < num_requests; ++number) {
      SCOPED_TRACE(fmt::format("fault {} at request {}", static_cast<int>(fault), number));
      AzurePlace place;
      place.server.fault = [=](int now) { return now == number ? fault : StoreFault::kNone; };
      use(*place.open());
      EXPECT_GT(place.server.num_requests(), num_requests);
      EXPECT_EQ(place.server.num_unfinished(), 0u);
    }
}

TEST_F(AzureBucketTest, AnUploadThatEndsAtAnyRequestContinues) {
  int num_requests = 0;
  {
    AzurePlace place;
    place.open()->put_file("shard", file(), size(), {.part_bytes = kPart, .num_connections = 1});
    num_requests = place.server.num_requests();
  }
  for (const StoreFault fault : {StoreFault::kDropBefore, StoreFault::kDropAfter})
    for (int number = 0; number < num_requests; ++number) {
      SCOPED_TRACE(fmt::format("fault {} at request {}", static_cast<int>(fault), number));
      AzurePlace place;
      std::stop_source stop;  // nothing of the upload is left in this process
      place.server.fault = [&](int now) {
        if (now != number) return StoreFault::kNone;
        stop.request_stop();
        return fault;
      };
      EXPECT_THROW(place.open()->put_file("shard", file(), size(),
                                          {.part_bytes = kPart, .num_connections = 1}, stop.get_token()),
                   Error);
      const auto bucket = place.open();
      int64_t reported = 0;
      bucket->put_file(
          "shard", file(), size(),
          {.part_bytes = kPart, .num_connections = 1, .progress = [&](int64_t n) { reported += n; }});
      EXPECT_EQ(reported, size());
      EXPECT_TRUE(bucket->get("shard", 1 << 20) == bytes_);
      EXPECT_EQ(place.server.num_parts(), 5) << "no block is sent twice";
      EXPECT_EQ(place.server.num_unfinished(), 0u);
    }
}

TEST_F(AzureBucketTest, AnEqualBlobIsNotSentAgain) {
  AzurePlace place;
  const auto bucket = place.open();
  bucket->put_file("shard", file(), size(), {.part_bytes = kPart});
  bucket->put_file("shard", file(), size(), {.part_bytes = kPart});
  EXPECT_EQ(place.server.num_parts(), 5);
  std::ofstream(file(), std::ios::binary) << std::string(bytes_.size(), 'z');
  bucket->put_file("shard", file(), size(), {.part_bytes = kPart});
  EXPECT_EQ(place.server.num_parts(), 10);
  EXPECT_EQ(bucket->get("shard", 1 << 20), std::string(bytes_.size(), 'z'));
}

TEST_F(AzureBucketTest, BlocksThatTheStoreHasLostAreSentAgain) {
  AzurePlace place;
  bool forgot = false;
  const auto forget_once = [&](int64_t) {
    if (!forgot) place.server.forget_blocks();
    forgot = true;
  };
  place.open()->put_file("shard", file(), size(),
                         {.part_bytes = kPart, .num_connections = 1, .progress = forget_once});
  EXPECT_TRUE(place.open()->get("shard", 1 << 20) == bytes_);
  EXPECT_EQ(place.server.num_parts(), 6);
}

TEST_F(AzureBucketTest, SaysWhatIsWrongWithoutSecrets) {
  AzurePlace place;
  const auto says = [&](const std::string& uri, ExitCode code, const std::string& text) {
    try {
      open_bucket(parse_remote(uri), kQuick)->put("a", "x", PutWhen::kAlways);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("of-the-test"), std::string::npos) << error.what();
    }
  };
  says("az://account/none/p", ExitCode::kUnusable, "create it first");
  place.server.fault = [](int) { return StoreFault::kSlowDown; };
  says("az://account/container/p", ExitCode::kStorage, "the store answers 503 (SlowDown: It is SlowDown.)");
  place.server.fault = nullptr;
  ::setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2021&sig=wrong-one-of-the-test", 1);
  says("az://account/container/p", ExitCode::kUnusable, "are the credentials right");
}

}  // namespace
}  // namespace tycho::testing
