// tycho convert --push as a process: what it sends and says, killed and started again, and its token.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "tests/host/shell.h"
#include "tests/trainer/hub/hub_uploads.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::SeenRequest;
using testing::ServerReply;

constexpr const char* kToken = "hf_tokenthatnobodymaysee";
constexpr const char* kRepository = "models/me/tiny";
const std::string kPush = "tycho convert runs/llama out --shard-size 50KB --push hf://me/tiny";

class PushTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    for (const char* name : {"HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
                             "HF_HUB_DISABLE_IMPLICIT_TOKEN", "TRANSFORMERS_OFFLINE", "http_proxy"})
      ::unsetenv(name);
    ::setenv("HF_HOME", (folder_ / "home").c_str(), 1);
    ::setenv("HF_ENDPOINT", server_.url().c_str(), 1);
    ::setenv("HF_TOKEN", kToken, 1);
    uploads_.token = kToken;
    uploads_.basic_bytes = 40000, uploads_.chunk_bytes = 16000;
    ASSERT_EQ(here("tycho convert " TYCHO_SOURCE_DIR "/tests/golden/hf/llama runs/llama").code, 0);
  }
  void TearDown() override {
    EXPECT_TRUE(server_.problems().empty()) << server_.problems().front();
    ::unsetenv("HF_TOKEN");
    ShellTest::TearDown();
  }
  std::string there(const std::string& path) { return server_.add(kRepository).files.at(path).bytes; }
  std::string near(const std::string& path) const {
    std::ostringstream out;
    out << std::ifstream(folder_ / "out" / path, std::ios::binary).rdbuf();
    return out.str();
  }

  testing::HubServer server_;
  testing::HubUploads uploads_{server_};
};

TEST_F(PushTest, MakesARepositoryOfTheExportAndNothingTheSecondTime) {
  const Outcome first = here(kPush);
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_CONTAINS(first.output, "pushed to hf://me/tiny: 133 KB of large files sent");
  EXPECT_CONTAINS(first.output, "commit: " + server_.url() + "/me/tiny/commit/");
  for (const auto& entry : fs::directory_iterator(folder_ / "out"))
    EXPECT_TRUE(there(entry.path().filename()) == near(entry.path().filename())) << entry.path();
  EXPECT_TRUE(there("README.md").starts_with("---\nlibrary_name: transformers\n")) << there("README.md");
  EXPECT_EQ(there("README.md").find(folder_), std::string::npos);
  const Outcome again = here(kPush);
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_CONTAINS(again.output, "kept out: it is the export of runs/llama/checkpoints/step-");
  EXPECT_CONTAINS(again.output, "pushed nothing to hf://me/tiny");
  EXPECT_EQ(uploads_.count("/commit/"), 1);
}

TEST_F(PushTest, RemovesShardsOfAnEarlierExportInTheSameCommit) {
  ASSERT_EQ(here(kPush).code, 0);
  server_.add_file(kRepository, "notes.txt", "mine");
  const Outcome whole = here("tycho convert runs/llama whole --push hf://me/tiny");
  ASSERT_EQ(whole.code, 0) << whole.output;
  EXPECT_CONTAINS(whole.output, "deleted in the same commit: model-00001-of-00003.safetensors");
  std::vector<std::string> left;
  for (const auto& [path, file] : server_.add(kRepository).files) left.push_back(path);
  EXPECT_EQ(left, (std::vector<std::string>{"README.md", "config.json", "generation_config.json",
                                            "model.safetensors", "notes.txt"}));
  EXPECT_EQ(uploads_.count("/commit/"), 2);
}

TEST_F(PushTest, GoesOnAfterKillMinus9) {
  std::atomic<int> num_parts = 0;
  std::atomic<bool> is_slow = true;
  uploads_.set_fault({}, [&](const SeenRequest&) -> std::optional<ServerReply> {
    if (!is_slow || ++num_parts < 4) return std::nullopt;
    return ServerReply{.status = 200, .body = "x", .hang_s = 600};
  });
  pid_t child = 0;
  const std::string command = "cd " + folder_.string() + " && exec " TYCHO_PROGRAM " " + kPush.substr(6);
  std::string shell = "sh", flag = "-c", text = command;
  char* arguments[] = {shell.data(), flag.data(), text.data(), nullptr};
  ASSERT_EQ(::posix_spawnp(&child, "sh", nullptr, nullptr, arguments, environ), 0);
  while (num_parts < 4 && ::waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(uploads_.count("/commit/"), 0);
  is_slow = false;
  std::map<std::string, int> sent;  // calls for each file that has arrived
  for (const auto& [hash, bytes] : uploads_.objects) sent[hash] = uploads_.count("/objects/" + hash);
  const Outcome again = here(kPush);
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_CONTAINS(again.output, "kept out");
  for (const auto& [hash, calls] : sent) EXPECT_EQ(uploads_.count("/objects/" + hash), calls) << "sent twice";
  EXPECT_TRUE(there("model-00003-of-00003.safetensors") == near("model-00003-of-00003.safetensors"));
}

TEST_F(PushTest, EndsBeforeTheExportIfItMayNotWrite) {
  uploads_.may_write = false;
  const Outcome refused = here(kPush);
  EXPECT_EQ(refused.code, 12) << refused.output;
  EXPECT_CONTAINS(refused.output, "This token has the role read: a write token is needed.");
  EXPECT_EQ(here("HF_HUB_OFFLINE=1 " + kPush).code, 12);
  EXPECT_EQ(here("HF_TOKEN= " + kPush).code, 12);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_EQ(here(kPush + "/folder").code, 12);
  EXPECT_EQ(here("tycho convert " TYCHO_SOURCE_DIR "/tests/golden/hf/llama b --push hf://me/tiny").code, 2);
  EXPECT_EQ(here(kPush + " --follow").code, 2);
}

TEST_F(PushTest, MakesThemPrivateOnlyWhereTheyArePushed) {
  const Outcome alone = here("tycho convert runs/llama out2 --private");
  EXPECT_EQ(alone.code, 2);
  EXPECT_CONTAINS(alone.output, "--private expected --push");
  EXPECT_EQ(here(kPush + " --private").code, 0);
  EXPECT_TRUE(server_.add(kRepository).is_private);
}

TEST_F(PushTest, RefusesAFolderThatIsAnotherExport) {
  ASSERT_EQ(here(kPush).code, 0);
  const Outcome other = here("tycho convert runs/llama out --dtype bf16 --push hf://me/tiny");
  EXPECT_EQ(other.code, 2) << other.output;
  EXPECT_EQ(uploads_.count("/commit/"), 1);
}

TEST_F(PushTest, KeepsTheTokenOutOfFilesAndMessages) {
  std::string said = here(kPush).output;
  uploads_.may_write = false;
  said += here(kPush).output + here("HF_ENDPOINT=http://u:$HF_TOKEN@h " + kPush).output;
  EXPECT_EQ(said.find(kToken), std::string::npos) << said;
  EXPECT_EQ(said.find("Signature"), std::string::npos) << said;
  EXPECT_EQ(here(std::string("grep -rl ") + kToken + " .").code, 1);
  for (const auto& call : uploads_.calls()) {
    const bool is_signed =
        call.at("host") == "second" || call.at("path").get<std::string>().starts_with("/complete");
    EXPECT_EQ(call.at("token"), !is_signed) << call.dump();
  }
}

}  // namespace
}  // namespace tycho
