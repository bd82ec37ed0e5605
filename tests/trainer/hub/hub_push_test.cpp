// Pushes against the stand-in, and against what huggingface_hub asks and leaves.
#include "trainer/hub/hub_push.h"

#include <algorithm>
#include <fstream>

#include "tests/trainer/hub/hub_fixture.h"
#include "tests/trainer/hub/hub_uploads.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::SeenRequest;
using testing::ServerReply;

constexpr const char* kRepository = "models/tests/pushed";

class HubPushTest : public testing::HubFixture {
 protected:
  HubPushTest() : golden_(Json::parse(read_file(std::string(TYCHO_GOLDEN_DIR) + "/hub/push.json"))) {
    ::setenv("HF_TOKEN", "hf_atokenoftests", 1);
    server_.page_entries = 100;
    uploads_.basic_bytes = golden_.at("basic_bytes");
    uploads_.chunk_bytes = golden_.at("chunk_bytes");
  }
  ~HubPushTest() override { ::unsetenv("HF_TOKEN"); }

  /// Makes the repository and the folder of a scenario.
  void set_up(const Json& scenario) {
    if (scenario.at("repository").is_null()) return make_folder(scenario.at("folder"));
    server_.add(kRepository);
    for (const auto& [path, text] : scenario.at("repository").items()) {
      const bool is_large = path.ends_with(".safetensors") || path.ends_with(".bin");
      server_.add_file(kRepository, path, text, is_large);
      if (is_large) uploads_.objects[server_.add(kRepository).files.at(path).sha256] = text;
    }
    make_folder(scenario.at("folder"));
  }
  void make_folder(const Json& files) {
    fs::remove_all(home_ + "/folder");
    fs::create_directories(home_ + "/folder");
    for (const auto& [path, text] : files.items())
      std::ofstream(home_ + "/folder/" + path) << text.get<std::string>();
  }
  HubPushReport push(const std::string& branch = "main") {
    const HubClient client(hub_settings(), {}, {.retries = 2, .first_wait_s = 0.01});
    const HubName to = parse_push_name("hf://tests/pushed@" + replaced(branch));
    create_repository(client, to);
    const auto is_stale = [](const std::string& path) {
      return path == "model.safetensors" || (path.starts_with("model-") && path.ends_with(".safetensors")) ||
             path.starts_with("pytorch_model-");
    };
    const auto is_own = [](const std::string& text) { return text.find("ours") != std::string::npos; };
    return push_folder(client, {to, home_ + "/folder", "A model", is_stale, is_own});
  }
  static std::string replaced(std::string branch) {
    if (const size_t slash = branch.find('/'); slash != std::string::npos) branch.replace(slash, 1, "%2F");
    return branch;
  }
  std::map<std::string, std::string> files() {
    std::map<std::string, std::string> found;
    for (const auto& [path, file] : server_.add(kRepository).files) found[path] = file.bytes;
    return found;
  }
  /// Calls by their text with sorted keys, each once: the official client asks for a commit again where
  /// nothing changed.
  static std::vector<std::string> lines_of(const Json& calls) {
    std::vector<std::string> lines;
    for (const Json& call : calls) lines.push_back(canonical_json(call));
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return lines;
  }

  Json golden_;
  testing::HubUploads uploads_{server_};
};

class HubPushGoldenTest : public HubPushTest, public ::testing::WithParamInterface<int> {};

TEST_P(HubPushGoldenTest, AsksAndLeavesWhatTheOfficialClientDoes) {
  const Json& scenario = golden_.at("scenarios").at(static_cast<size_t>(GetParam()));
  SCOPED_TRACE(scenario.at("name"));
  set_up(scenario);
  push(scenario.at("branch"));
  EXPECT_EQ(lines_of(uploads_.calls()), lines_of(scenario.at("calls")));
  std::map<std::string, std::string> wanted = scenario.at("after");
  EXPECT_EQ(files(), wanted);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, HubPushGoldenTest, ::testing::Range(0, 4));

TEST_F(HubPushTest, SendsNothingTwiceAfterAPushThatDidNotEnd) {
  set_up(golden_.at("scenarios").at(0));
  bool is_cut = true;
  uploads_.set_fault([&](const SeenRequest& request) -> std::optional<ServerReply> {
    if (!is_cut || request.path.find("/commit/") == std::string::npos) return std::nullopt;
    return ServerReply{.drop = true};
  });
  expect_failure([&] { push(); }, ExitCode::kStorage, "3 tries");
  const int num_sent = uploads_.count("PUT");
  is_cut = false;
  const HubPushReport report = push();
  EXPECT_EQ(uploads_.count("PUT"), num_sent);
  EXPECT_EQ(report.sent_bytes, 0);
  EXPECT_EQ(report.written.size(), 6u);
  EXPECT_FALSE(push().is_changed);
}

/// Fails on the last of four parts of a file; the store keeps what came.
class HalfSentTest : public HubPushTest {
 protected:
  HalfSentTest() {
    set_up(golden_.at("scenarios").at(0));
    uploads_.set_fault({}, [this](const SeenRequest& request) -> std::optional<ServerReply> {
      const bool is_part = request.path.find('/', std::string("/objects/").size()) != std::string::npos;
      if (is_part && has_expired_ && request.path.ends_with("=sig")) return ServerReply{.status = 403};
      if (!is_part || !is_cut_ || ++num_parts_ <= 3) return std::nullopt;
      return ServerReply{.status = 500};
    });
    expect_failure([&] { push(); }, ExitCode::kStorage, "3 tries");
    is_cut_ = false;
  }
  /// Returns how many addresses were sent to once.
  int num_sent_once() const {
    std::map<std::string, int> sent;
    for (const Json& call : uploads_.calls())
      if (call.at("method") == "PUT") ++sent[call.at("path")];
    return static_cast<int>(
        std::count_if(sent.begin(), sent.end(), [](const auto& one) { return one.second == 1; }));
  }

  const fs::path kept_ = home_ + "/hub/.locks/.uploads.tycho";
  std::atomic<bool> is_cut_ = true, has_expired_ = false;
  std::atomic<int> num_parts_ = 0;
};

TEST_F(HalfSentTest, GoesOnWithinTheFile) {
  ASSERT_FALSE(fs::is_empty(kept_));
  for (const auto& one : fs::directory_iterator(kept_))
    EXPECT_EQ(one.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << one.path();
  EXPECT_EQ(push().sent_bytes, 210 - 3 * 64);
  EXPECT_EQ(num_sent_once(), 4) << "three parts, and the file that has none";
  EXPECT_TRUE(fs::is_empty(kept_));
}

TEST_F(HalfSentTest, StartsTheFileAgainIfItsAddressesHaveExpired) {
  has_expired_ = true;
  EXPECT_EQ(push().sent_bytes, 210);
  EXPECT_TRUE(fs::is_empty(kept_));
  EXPECT_FALSE(push().is_changed);
}

TEST_F(HubPushTest, SaysBeforeAnythingElseThatAnExistingRepositoryMayNotBeWritten) {
  set_up(golden_.at("scenarios").at(1));
  uploads_.may_create = uploads_.may_write = false;
  const HubClient client(hub_settings(), {}, {.retries = 2, .first_wait_s = 0.01});
  expect_failure([&] { create_repository(client, parse_push_name("hf://tests/pushed")); },
                 ExitCode::kUnusable, "may not be written");
}

TEST_F(HubPushTest, KeepsARepositoryPrivate) {
  const HubClient client(hub_settings(), {}, {.retries = 2, .first_wait_s = 0.01});
  const HubName to = parse_push_name("hf://tests/pushed");
  create_repository(client, to, /*is_private=*/true);
  EXPECT_EQ(uploads_.calls().at(0).at("body"),
            (Json{{"name", "pushed"}, {"organization", "tests"}, {"visibility", "private"}}));
  EXPECT_TRUE(server_.add(kRepository).is_private);
  create_repository(client, to, /*is_private=*/true);
  create_repository(client, to);
  server_.add(kRepository).is_private = false;
  expect_failure([&] { create_repository(client, to, /*is_private=*/true); }, ExitCode::kUnusable,
                 "hf://tests/pushed is public");
}

TEST_F(HubPushTest, TakesACommitWhoseAnswerWasLostForDone) {
  set_up(golden_.at("scenarios").at(1));
  int num_commits = 0;
  uploads_.set_fault([&](const SeenRequest& request) -> std::optional<ServerReply> {
    if (request.path.find("/commit/") == std::string::npos || ++num_commits > 1) return std::nullopt;
    uploads_.answer(request);
    return ServerReply{.drop = true};
  });
  const HubPushReport report = push();
  EXPECT_EQ(num_commits, 2);
  EXPECT_EQ(report.commit, server_.add(kRepository).commit);
}

TEST_F(HubPushTest, LeavesABranchThatHasMovedAsItIs) {
  set_up(golden_.at("scenarios").at(1));
  uploads_.set_fault([&](const SeenRequest& request) -> std::optional<ServerReply> {
    if (request.path.find("/commit/") != std::string::npos)
      server_.add(kRepository).commit = std::string(40, 'e');
    return std::nullopt;
  });
  const auto before = files();
  expect_failure([&] { push(); }, ExitCode::kUnusable,
                 "hf://tests/pushed@main has moved from 0123456789abcdef0123456789abcdef01234567 to " +
                     std::string(40, 'e'));
  EXPECT_EQ(files(), before);
}

TEST_F(HubPushTest, SaysThatATokenMayOnlyRead) {
  set_up(golden_.at("scenarios").at(1));
  uploads_.may_write = false;
  expect_failure([&] { push(); }, ExitCode::kUnusable,
                 "the token may only read it, or its owner has not let you write (This token has the role "
                 "read: a write token is needed.)");
  ::setenv("HF_TOKEN", "hf_another", 1);
  expect_failure([&] { push(); }, ExitCode::kUnusable, "the hub does not know the token");
  ::unsetenv("HF_TOKEN");
  const size_t num_calls = uploads_.calls().size();
  expect_failure([&] { push(); }, ExitCode::kUnusable, "expected a token that may write, got none");
  EXPECT_EQ(uploads_.calls().size(), num_calls);
  EXPECT_EQ(uploads_.count("PUT"), 0);
}

TEST_F(HubPushTest, WritesToARepositoryThatTheTokenCouldNotCreate) {
  set_up(golden_.at("scenarios").at(1));
  uploads_.may_create = false;
  EXPECT_TRUE(push().is_changed);
}

TEST_F(HubPushTest, ReplacesACardOfItsOwnOnly) {
  set_up(golden_.at("scenarios").at(1));
  server_.add_file(kRepository, "README.md", "written by a person");
  EXPECT_TRUE(push().keeps_card);
  EXPECT_EQ(files().at("README.md"), "written by a person");
  server_.add_file(kRepository, "README.md", "ours, but older");
  EXPECT_FALSE(push().keeps_card);
  EXPECT_EQ(files().at("README.md"), golden_.at("scenarios").at(1).at("folder").at("README.md"));
}

TEST_F(HubPushTest, AsksForNewAddressesWhenTheStoreRefusesOld) {
  set_up(golden_.at("scenarios").at(0));
  int num_refused = 2;
  uploads_.set_fault({}, [&](const SeenRequest&) -> std::optional<ServerReply> {
    if (num_refused-- <= 0) return std::nullopt;
    return ServerReply{403, "Request has expired"};
  });
  EXPECT_TRUE(push().is_changed);
  EXPECT_GE(uploads_.count("POST /tests/pushed.git/info/lfs/objects/batch"), 2);
}

TEST_F(HubPushTest, FollowsNoRedirectToAnotherHost) {
  set_up(golden_.at("scenarios").at(0));
  uploads_.set_fault([&](const SeenRequest& request) -> std::optional<ServerReply> {
    if (request.path.find("/commit/") == std::string::npos) return std::nullopt;
    return ServerReply{307, "moved", {"Location: " + server_.second_url() + "/commit"}};
  });
  expect_failure([&] { push(); }, ExitCode::kUnusable, "redirects to another host");
  EXPECT_EQ(uploads_.count("POST /commit"), 0);
}

TEST_F(HubPushTest, RefusesWhatIsNoBranchOfAModel) {
  for (const auto& [name, words] : std::map<std::string, std::string>{
           {"hf://datasets/a/b", "no data set"},
           {"hf://a/b/c", "leave the path out"},
           {"hf://gpt2", "name the owner"},
           {"hf://a/b@0123456789abcdef0123456789abcdef01234567", "name a branch"}})
    expect_failure([&] { parse_push_name(name); }, ExitCode::kUnusable, words);
}

}  // namespace
}  // namespace tycho
