// Tokens against a stand-in: what azure-identity asks for, in its order; renewal; refusals; secrets.
#include "trainer/identities/azure_identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/trainer/data/storage/http_server.h"
#include "tests/trainer/identities/fetched_text.h"
#include "tests/trainer/identities/form_pairs.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/data/storage/azure_access.h"
#include "trainer/data/storage/open_remote_files.h"
#include "trainer/data/storage/remote_files.h"

namespace tycho::testing {
namespace {

namespace fs = std::filesystem;

class AzureIdentity : public ::testing::Test {
 protected:
  AzureIdentity() {
    ::setenv("no_proxy", "127.0.0.1", 1);
    forget();
    std::string pattern = fs::temp_directory_path() / "tycho-azure-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    server_.set_fault([this](const SeenRequest& request) { return answer(request); });
  }
  ~AzureIdentity() override {
    forget();
    fs::remove_all(folder_);
  }
  static void forget() {
    for (const char* name :
         {"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE",
          "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "AZURE_POD_IDENTITY_AUTHORITY_HOST",
          "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SERVICE_ENDPOINT"})
      ::unsetenv(name);
  }
  ServerReply answer(const SeenRequest&) {
    const int number = num_asked_++;
    if (number < static_cast<int>(statuses_.size()))
      if (const int status = statuses_[static_cast<size_t>(number)]; status != 200)
        return {.status = status, .body = error_, .headers = {"Retry-After: 0"}, .is_whole = true};
    return {.body = "{\"access_token\": \"token-number-" + std::to_string(number) +
                    "\", \"expires_in\": " + lifetime_ + "}",
            .is_whole = true};
  }
  void use_machine() { ::setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", server_.url().c_str(), 1); }
  void use_secret() {
    ::setenv("AZURE_CLIENT_ID", "client", 1), ::setenv("AZURE_TENANT_ID", "tenant", 1);
    ::setenv("AZURE_CLIENT_SECRET", "secret-of-the-test", 1);
    ::setenv("AZURE_AUTHORITY_HOST", server_.url().c_str(), 1);
  }
  static void expect_error(ExitCode code, const std::string& text) {
    try {
      azure_token({});
      ADD_FAILURE() << "no Error: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("secret-of-the-test"), std::string::npos) << error.what();
    }
  }

  std::string folder_;
  std::vector<int> statuses_;
  std::string error_ = "{\"error_description\": \"no such secret-of-the-test\"}", lifetime_ = "3600";
  std::atomic<int> num_asked_ = 0;
  HttpServer server_{"/nonexistent"};  // last: its threads use the others
};

TEST_F(AzureIdentity, AsksAsAzureIdentityDoes) {
  const Json cases = parse_json(read_file(TYCHO_GOLDEN_DIR "/azure/identity.json"), "golden");
  ASSERT_GE(cases.size(), 8U);
  std::ofstream(folder_ + "/token") << "assertion-of-the-golden\n";
  for (const Json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    forget();
    ::setenv("AZURE_AUTHORITY_HOST", server_.url().c_str(), 1);
    for (const auto& variable : one.at("environment").items()) {
      std::string value = variable.value();
      if (value == "FILE") value = folder_ + "/token";
      if (const size_t host = value.find("http://127.0.0.1:4141"); host == 0)
        value.replace(0, std::string("http://127.0.0.1:4141").size(), server_.url());
      ::setenv(variable.key().c_str(), value.c_str(), 1);
    }
    const size_t before = server_.requests().size();
    EXPECT_TRUE(azure_token({}).starts_with("token-number-"));
    ASSERT_EQ(server_.requests().size(), before + 1);
    const SeenRequest asked = server_.requests().back();
    const Json& wanted = one.at("request");
    EXPECT_EQ(asked.method, wanted.at("method").get<std::string>());
    const size_t mark = asked.path.find('?');
    EXPECT_EQ(asked.path.substr(0, mark), wanted.at("path").get<std::string>());
    const Json query = decoded_pairs(mark == std::string::npos ? std::string() : asked.path.substr(mark + 1));
    EXPECT_EQ(canonical_json(query), canonical_json(wanted.at("query")));
    EXPECT_EQ(canonical_json(decoded_pairs(asked.body)), canonical_json(wanted.at("form")));
    for (const auto& header : wanted.at("headers").items()) {
      const auto found = asked.headers.find(header.key());
      ASSERT_NE(found, asked.headers.end());
      EXPECT_EQ(found->second, header.value().get<std::string>());
    }
  }
}

TEST_F(AzureIdentity, KeepsATokenAndRenewsItBeforeItExpires) {
  use_machine();
  EXPECT_EQ(azure_token({}), "token-number-0");
  EXPECT_EQ(azure_token({}), "token-number-0");
  EXPECT_EQ(num_asked_, 1);
  ::setenv("AZURE_CLIENT_ID", "another", 1);
  lifetime_ = "\"2\"";
  EXPECT_EQ(azure_token({}), "token-number-1");
  for (int i = 0; i < 60'000 && azure_token({}) == "token-number-1"; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(num_asked_, 3) << "half of two seconds are over";
}

TEST_F(AzureIdentity, AGoodTokenServesWhileRenewingFails) {
  use_machine();
  lifetime_ = "8";
  statuses_.assign(1000, 401);
  statuses_[0] = 200;
  const std::string first = azure_token({});
  for (int i = 0; i < 60'000 && num_asked_ < 2; ++i) {
    ASSERT_EQ(azure_token({}), first);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(azure_token({}), first);
  EXPECT_EQ(num_asked_, 2) << "renewing is tried again after half a minute";
}

TEST_F(AzureIdentity, WaitsForAMachineThatIsStarting) {
  use_machine();
  statuses_ = {410, 200};
  EXPECT_EQ(azure_token({}), "token-number-1");
}

TEST_F(AzureIdentity, AMachineWithoutIdentityIsAskedOnce) {
  use_machine();
  statuses_ = {400};
  EXPECT_EQ(azure_token({}), "");
  EXPECT_EQ(azure_token({}), "");
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(AzureIdentity, SaysWhyAnIdentityIsRefused) {
  use_secret();
  statuses_ = {401};
  expect_error(ExitCode::kUnusable, "AZURE_CLIENT_SECRET: expected a token, got 401 (no such ***)");
  num_asked_ = 0;
  ::setenv("AZURE_AUTHORITY_HOST", "http://login.example.com", 1);
  expect_error(ExitCode::kUnusable, "a token must not be sent unencrypted");
  ::unsetenv("AZURE_CLIENT_SECRET");
  ::setenv("AZURE_FEDERATED_TOKEN_FILE", "/nonexistent/token", 1);
  ::setenv("AZURE_AUTHORITY_HOST", server_.url().c_str(), 1);
  expect_error(ExitCode::kUnusable, "/nonexistent/token");
}

TEST_F(AzureIdentity, AStopEndsTheWait) {
  use_secret();
  statuses_.assign(1000, 500);
  std::stop_source stop;
  std::jthread stopper([&] {
    while (num_asked_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop.request_stop();
  });
  try {
    azure_token(stop.get_token());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTerminated);
  }
}

TEST_F(AzureIdentity, RemoteDataIsReadWithTheTokenOrTheSas) {
  HttpServer blobs{"/nonexistent"};
  blobs.set_fault([](const SeenRequest& request) {
    const auto token = request.headers.find("authorization");
    const std::string sas = request.path.find("?sv=1&sig=of-the-test") == std::string::npos ? "" : "SAS";
    return ServerReply{.body = token == request.headers.end() ? sas : sas + token->second, .is_whole = true};
  });
  ::setenv("AZURE_STORAGE_SERVICE_ENDPOINT", (blobs.url() + "/account").c_str(), 1);
  use_machine();
  const RemoteUri place = parse_remote("az://account/texts/a b");
  const auto read = [&] {
    testing::FetchedText text;
    EXPECT_EQ(open_remote_files(place, "")->fetch("index.json", {}, text).state, FetchOutcome::State::kDone);
    return text.text;
  };
  EXPECT_EQ(read(), "Bearer token-number-0");
  EXPECT_EQ(blobs.requests().back().path, "/account/texts/a%20b/index.json");
  EXPECT_EQ(blobs.requests().back().headers.count("x-ms-version"), 1U);
  EXPECT_TRUE(holds_secret("token-number-0"));
  ::setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=of-the-test", 1);
  EXPECT_EQ(read(), "SAS") << "a SAS goes before an identity";
  EXPECT_EQ(num_asked_, 1);
  ::unsetenv("AZURE_STORAGE_SAS_TOKEN");
  statuses_ = {200, 400};
  ::setenv("AZURE_CLIENT_ID", "none", 1);
  EXPECT_EQ(read(), "") << "containers may be public";
  ::unsetenv("AZURE_CLIENT_ID");
  ::setenv("AZURE_STORAGE_SERVICE_ENDPOINT", "http://blobs.example.com", 1);
  testing::FetchedText text;
  EXPECT_THROW(open_remote_files(place, "")->fetch("index.json", {}, text), Error) << "not encrypted";
}

TEST_F(AzureIdentity, OneContainerHasTwoNames) {
  const RemoteUri place = as_azure_place(parse_remote("https://account.blob.core.windows.net/texts/a%20b/c"));
  EXPECT_EQ(place.kind, RemoteUri::Kind::kAzure);
  EXPECT_EQ(place.bucket, "texts");
  EXPECT_EQ(place.prefix, "a b/c");
  EXPECT_EQ(azure_container_url(place), "https://account.blob.core.windows.net/texts");
  EXPECT_EQ(azure_container_url(parse_remote("az://account/texts/a")),
            "https://account.blob.core.windows.net/texts");
  EXPECT_EQ(as_azure_place(parse_remote("https://example.com/texts")).kind, RemoteUri::Kind::kHttp);
  EXPECT_FALSE(is_azure_url("https://account.blob.core.windows.net.example.com/texts"));
}

}  // namespace
}  // namespace tycho::testing
