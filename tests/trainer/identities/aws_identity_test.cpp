// Credentials against a stand-in: what botocore asks for, in its order; renewal; refusals; secrets.
#include "trainer/identities/aws_identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
#include "trainer/data/storage/open_remote_files.h"
#include "trainer/data/storage/remote_files.h"
#include "trainer/identities/aws_machine.h"
#include "trainer/identities/aws_profile.h"

namespace tycho::testing {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class AwsIdentityTest : public ::testing::Test {
 protected:
  AwsIdentityTest() {
    if (const char* home = ::getenv("HOME"); home != nullptr) old_home_ = home;
    ::setenv("no_proxy", "127.0.0.1", 1);
    std::string pattern = fs::temp_directory_path() / "tycho-aws-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    start_case();
    server_.set_fault([this](const SeenRequest& request) { return reply_(request); });
  }
  ~AwsIdentityTest() override {
    forget();
    ::setenv("HOME", old_home_.c_str(), 1);
    fs::remove_all(folder_);
  }
  static void forget() {
    std::vector<std::string> names;
    for (char** variable = environ; *variable != nullptr; ++variable)
      if (const std::string text = *variable; text.starts_with("AWS_"))
        names.push_back(text.substr(0, text.find('=')));
    for (const std::string& name : names) ::unsetenv(name.c_str());
  }
  /// Sets up a home without any identity, which no earlier case had.
  void start_case() {
    forget();
    home_ = folder_ + "/home-" + std::to_string(num_homes_++);
    fs::create_directories(home_);
    ::setenv("HOME", home_.c_str(), 1);
  }
  void set(const char* name, const std::string& value) {
    ::setenv(name,
             replaced(replaced(value, "HOME/", home_ + "/"), "http://127.0.0.1:4141", server_.url()).c_str(),
             1);
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(home_ + "/" + name).parent_path());
    std::ofstream(home_ + "/" + name) << replaced(text, "HOME/", home_ + "/");
  }
  void use_machine() { set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_.url()); }
  void use_container() { set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_.url() + "/keys"); }
  /// Returns credentials whose name counts the requests for them, and that live so long.
  ServerReply numbered_keys(double lifetime_s) {
    const std::string name = "AKID" + std::to_string(num_asked_++);
    const std::time_t at = std::time(nullptr) + static_cast<std::time_t>(lifetime_s);
    char expiration[32];
    std::tm parts{};
    ::gmtime_r(&at, &parts);
    std::strftime(expiration, sizeof expiration, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {.body = Json({{"AccessKeyId", name},
                          {"SecretAccessKey", "secret-of-the-test-" + name},
                          {"Token", "t"},
                          {"Expiration", expiration}})
                        .dump(),
            .is_whole = true};
  }
  static std::string key_id() { return aws_identity({}).credentials.key_id; }
  static void expect_error(ExitCode code, const std::string& text) {
    try {
      aws_identity({});
      ADD_FAILURE() << "no Error: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("secret-of-the-test"), std::string::npos) << error.what();
    }
  }

  std::string folder_, home_, old_home_;
  int num_homes_ = 0;
  std::atomic<int> num_asked_ = 0;
  std::function<ServerReply(const SeenRequest&)> reply_;
  HttpServer server_{"/nonexistent"};  // last: its threads use the others
};

TEST_F(AwsIdentityTest, FindsAndAsksAsBotocoreDoes) {
  const Json golden = parse_json(read_file(TYCHO_GOLDEN_DIR "/aws/identity.json"), "golden");
  ASSERT_GE(golden.at("cases").size(), 20U);
  for (const Json& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    start_case();
    for (const auto& variable : one.at("environment").items())
      set(variable.key().c_str(), variable.value().get<std::string>());
    for (const auto& file : one.at("files").items()) write(file.key(), file.value().get<std::string>());
    const Json& wanted = one.at("requests");
    std::atomic<size_t> number = 0;
    reply_ = [&](const SeenRequest&) -> ServerReply {
      const size_t at = number++;
      if (at >= wanted.size()) return {.status = 501, .is_whole = true};
      return {.status = wanted[at].at("status").get<int>(),
              .body = wanted[at].at("answer").get<std::string>(),
              .is_whole = true};
    };
    const size_t before = server_.requests().size();
    const AwsIdentity found = aws_identity({});
    EXPECT_EQ(found.credentials.key_id, one.at("key_id").get<std::string>());
    EXPECT_EQ(found.credentials.secret, one.at("secret").get<std::string>());
    EXPECT_EQ(found.credentials.session_token, one.at("session").get<std::string>());
    EXPECT_EQ(found.lack.empty(), !found.credentials.key_id.empty());
    const auto seen = server_.requests();
    ASSERT_EQ(seen.size(), before + wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const SeenRequest& asked = seen[before + i];
      EXPECT_EQ(asked.method, wanted[i].at("method").get<std::string>());
      const size_t mark = std::min(asked.path.find('?'), asked.path.size());
      EXPECT_EQ(asked.path.substr(0, mark), wanted[i].at("path").get<std::string>());
      const std::string query = mark == asked.path.size() ? "" : asked.path.substr(mark + 1);
      EXPECT_EQ(canonical_json(decoded_pairs(query)), canonical_json(wanted[i].at("query")));
      const bool is_json = asked.body.starts_with("{");
      EXPECT_EQ(canonical_json(is_json ? parse_json(asked.body, "body") : Json::object()),
                canonical_json(wanted[i].at("json")));
      Json form = is_json ? Json::object() : decoded_pairs(asked.body);
      if (!wanted[i].at("form").contains("RoleSessionName")) form.erase("RoleSessionName");  // its own name
      EXPECT_EQ(canonical_json(form), canonical_json(wanted[i].at("form")));
      for (const auto& header : wanted[i].at("headers").items()) {
        const auto sent = asked.headers.find(header.key());
        ASSERT_NE(sent, asked.headers.end()) << header.key();
        const auto value = header.value().get<std::string>();
        EXPECT_TRUE(value.starts_with("AWS4") ? sent->second.starts_with(value) : sent->second == value)
            << sent->second;
      }
    }
    for (const char* secret : {"secret", "session"})
      if (const auto text = one.at(secret).get<std::string>(); !text.empty()) {
        EXPECT_TRUE(holds_secret(text)) << text;
      }
  }
}

TEST_F(AwsIdentityTest, AsksTheHostsThatBotocoreAsks) {
  const Json golden = parse_json(read_file(TYCHO_GOLDEN_DIR "/aws/identity.json"), "golden");
  for (const Json& one : golden.at("hosts")) {
    const auto name = one.at("name").get<std::string>();
    SCOPED_TRACE(name);
    start_case();
    for (const auto& variable : one.at("environment").items())
      set(variable.key().c_str(), variable.value().get<std::string>());
    const AwsProfiles profiles;
    if (one.at("refused").get<bool>()) {
      EXPECT_THROW(aws_container_url(), Error);
      continue;
    }
    const auto url = one.at("urls").at(0).get<std::string>();
    if (name != "sso") {
      const std::string ours = name.starts_with("container") ? aws_container_url()
                               : name.starts_with("machine")
                                   ? aws_metadata_url(profiles) + "/latest/api/token"
                                   : aws_service_url(profiles, "sts", aws_region(profiles)) + "/";
      EXPECT_EQ(ours, url);
      continue;
    }
    EXPECT_EQ(aws_service_url(profiles, "sso_oidc", "us-east-2") + "/token", url);
    EXPECT_TRUE(one.at("urls").at(1).get<std::string>().starts_with(
        aws_service_url(profiles, "sso", "us-east-2") + "/"));
  }
}

TEST_F(AwsIdentityTest, KeepsCredentialsAndRenewsThemBeforeTheyExpire) {
  use_container();
  std::atomic<int> lifetime_s = 7200;
  reply_ = [&](const SeenRequest&) { return numbered_keys(lifetime_s); };
  EXPECT_EQ(key_id(), "AKID0");
  EXPECT_EQ(key_id(), "AKID0");
  EXPECT_EQ(num_asked_, 1);
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "another");
  lifetime_s = 4;
  EXPECT_EQ(key_id(), "AKID1");
  for (int i = 0; i < 60'000 && key_id() == "AKID1"; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(num_asked_, 3) << "half of four seconds are over";
}

TEST_F(AwsIdentityTest, GoodCredentialsServeWhileOneThreadRenewsThemAndWhenItFails) {
  use_container();
  reply_ = [&](const SeenRequest&) {
    if (num_asked_ == 0) return numbered_keys(14);
    ++num_asked_;
    return ServerReply{.status = 403, .hang_s = 1, .is_whole = true};
  };
  ASSERT_EQ(key_id(), "AKID0");
  std::vector<std::jthread> threads;
  std::atomic<bool> is_over = false;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!is_over) {
        EXPECT_EQ(key_id(), "AKID0");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  for (int i = 0; i < 60'000 && num_asked_ < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  is_over = true;
  threads.clear();
  EXPECT_EQ(num_asked_, 2) << "renewing is tried again after half a minute";
}

TEST_F(AwsIdentityTest, AMachineInTroubleMayGiveCredentialsThatHaveExpired) {
  use_machine();
  reply_ = [&](const SeenRequest& request) -> ServerReply {
    if (request.path == "/latest/api/token") return {.body = "token", .is_whole = true};
    if (request.path.ends_with("/")) return {.body = "role", .is_whole = true};
    return numbered_keys(-60);
  };
  EXPECT_EQ(key_id(), "AKID0");
  EXPECT_EQ(key_id(), "AKID0");
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(AwsIdentityTest, AMachineWithoutMetadataCostsOneWaitAndIsNotAskedAgain) {
  use_machine();
  set("AWS_METADATA_SERVICE_TIMEOUT", "0.2");
  reply_ = [&](const SeenRequest&) -> ServerReply {
    ++num_asked_;
    return {.body = "late", .hang_s = 1000, .is_whole = true};
  };
  EXPECT_EQ(key_id(), "");
  const std::string lack = aws_identity({}).lack;
  EXPECT_NE(lack.find("no metadata service"), std::string::npos) << lack;
  EXPECT_NE(lack.find("no answer in 0.2 s"), std::string::npos) << lack;
  EXPECT_EQ(num_asked_, 1);
}

TEST_F(AwsIdentityTest, WaitsForAServiceThatIsBusy) {
  use_container();
  reply_ = [&](const SeenRequest&) {
    if (server_.requests().size() < 2) return ServerReply{.status = 503, .is_whole = true};
    return numbered_keys(7200);
  };
  EXPECT_EQ(key_id(), "AKID0");
}

TEST_F(AwsIdentityTest, SaysWhatIsWrongWithAnIdentityAndWhatToDo) {
  set("AWS_ENDPOINT_URL", server_.url());
  const auto refused = [&](const std::string& config, const std::string& text) {
    write(".aws/config", "[default]\n" + config);
    set("AWS_EC2_METADATA_DISABLED", "true" + std::string(static_cast<size_t>(num_asked_++), ' '));
    expect_error(ExitCode::kUnusable, text);
  };
  reply_ = [&](const SeenRequest&) -> ServerReply {
    return {.status = 403,
            .body =
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not secret-of-the-test</Message>"
                "</Error></ErrorResponse>",
            .is_whole = true};
  };
  const std::string role = "role_arn = arn:aws:iam::1:role/a\n";
  refused("aws_access_key_id = half\n", "the AWS profile has the id of an AWS key without the other half");
  refused(
      role,
      "the profile default has role_arn: expected either source_profile or credential_source, got neither");
  refused(role + "source_profile = b\n", "its source_profile b does not exist");
  refused(role + "source_profile = b\n[profile b]\n" + role + "source_profile = default\n",
          "leads back to itself");
  refused(role + "source_profile = b\n[profile b]\nregion = x\n",
          "expected credentials of its source, got none");
  refused(role + "credential_source = Moon\n", "Ec2InstanceMetadata, got Moon");
  refused(role + "mfa_serial = 1\nsource_profile = b\n", "mfa_serial needs a person at each renewal");
  refused("login_session = x\n", "(login_session) is not supported");
  refused("web_identity_token_file = HOME/none\n", "expected a role, got none; set AWS_ROLE_ARN");
  refused(role + "web_identity_token_file = HOME/none\n", "/none");
  write("token", "secret-of-the-test\n");
  refused(role + "web_identity_token_file = HOME/token\n",
          "the web identity: expected a token, got 403 (AccessDenied: not ***); correct the role's name");
  refused("sso_role_name = a\n", "expected sso_start_url, which a login by SSO needs");
  refused("sso_session = gone\nsso_role_name = a\n", "expected [sso-session gone]");
  const std::string sso =
      "sso_start_url = s\nsso_region = us-east-2\nsso_account_id = 1\nsso_role_name = a\n";
  refused(sso, "run `aws sso login --profile default`");
  refused("credential_process = /nonexistent/program\n", "cannot start /nonexistent/program");
  refused("credential_process = sh -c 'echo sorry >&2; exit 3'\n", "got exit code 3 (sorry");
  refused("credential_process = echo '{\"Version\": 2}'\n", "expected \"Version\": 1, got another or none");
  refused("credential_process = echo hello\n", "expected JSON with AccessKeyId");
  refused("credential_process = sh -c 'a\n", "expected a closing '");
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/x");
  refused("", "got http://example.com/x");
  use_container();
  refused("", "the container's credentials: expected a token, got 403");
  ::unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  set("AWS_ENDPOINT_URL", "http://example.com");
  refused(role + "web_identity_token_file = HOME/token\n", "a token must not be sent unencrypted");
}

TEST_F(AwsIdentityTest, ARenewedLoginIsKeptForItsOwnerAlone) {
  const Json golden = parse_json(read_file(TYCHO_GOLDEN_DIR "/aws/identity.json"), "golden");
  for (const Json& one : golden.at("cases")) {
    if (one.at("name") != "SSO with a login that is due") continue;
    for (const auto& variable : one.at("environment").items())
      set(variable.key().c_str(), variable.value().get<std::string>());
    for (const auto& file : one.at("files").items()) write(file.key(), file.value().get<std::string>());
    std::atomic<size_t> number = 0;
    reply_ = [&](const SeenRequest&) -> ServerReply {
      return {.body = one.at("requests").at(number++).at("answer").get<std::string>(), .is_whole = true};
    };
    EXPECT_EQ(key_id(), "AKIDSSO");
  }
  for (const auto& file : fs::directory_iterator(home_ + "/.aws/sso/cache")) {
    const Json login = parse_json(read_file(file.path()), "login");
    EXPECT_EQ(login.at("accessToken"), "renewed-token");
    EXPECT_EQ(login.at("refreshToken"), "next-refresh");
    EXPECT_EQ(login.at("clientSecret"), "secret-of-the-client");
    struct stat facts {};
    ASSERT_EQ(::stat(file.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U);
  }
  EXPECT_TRUE(holds_secret("renewed-token"));
}

TEST_F(AwsIdentityTest, AStopEndsAWaitAndAProcess) {
  for (const bool is_process : {false, true}) {
    start_case();
    reply_ = [&](const SeenRequest&) -> ServerReply {
      ++num_asked_;
      return {.status = 500, .is_whole = true};
    };
    if (is_process)
      write(".aws/config", "[default]\ncredential_process = sh -c 'touch \"HOME/began\"; exec sleep 1000'\n");
    else
      use_container();
    std::stop_source stop;
    std::jthread stopper([&] {
      while (is_process ? !fs::exists(home_ + "/began") : num_asked_ == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stop.request_stop();
    });
    try {
      aws_identity(stop.get_token());
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTerminated);
    }
  }
}

TEST_F(AwsIdentityTest, RemoteDataIsReadWithTheIdentityAndSaysWhyItHasNone) {
  HttpServer store{"/nonexistent"};
  store.set_fault([](const SeenRequest& request) {
    const bool is_signed = request.headers.contains("authorization");
    return ServerReply{.status = is_signed ? 200 : 403, .body = "x", .is_whole = true};
  });
  use_container();
  set("AWS_ENDPOINT_URL_S3", store.url());
  reply_ = [&](const SeenRequest&) { return numbered_keys(7200); };
  const auto read = [&](const char* place) {
    testing::FetchedText text;
    return open_remote_files(parse_remote(place), "")->fetch("index.json", {}, text);
  };
  EXPECT_EQ(read("s3://bucket/p").state, FetchOutcome::State::kDone);
  const auto headers = store.requests().back().headers;
  EXPECT_NE(headers.at("authorization").find("Credential=AKID0/"), std::string::npos);
  EXPECT_EQ(headers.at("x-amz-security-token"), "t");
  ::unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  set("AWS_EC2_METADATA_DISABLED", "true");
  const FetchOutcome refused = read("s3://bucket/p");
  EXPECT_EQ(refused.state, FetchOutcome::State::kRefused);
  for (const char* part : {"not signed", "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE",
                           "profile default", "a container", "AWS_EC2_METADATA_DISABLED"})
    EXPECT_NE(refused.problem.find(part), std::string::npos) << refused.problem;
}

}  // namespace
}  // namespace tycho::testing
