// tycho fetch as a process: killed, beside another one, on a full disk, with a token.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <chrono>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "tests/host/shell.h"
#include "tests/trainer/hub/hub_server.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::SeenRequest;
using testing::ServerReply;

constexpr size_t kPieceBytes = size_t{8} << 20;
constexpr const char* kToken = "hf_tokenthatnobodymaysee";

std::string bytes_of(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

class FetchTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE",
                             "HUGGINGFACE_HUB_CACHE", "HF_HUB_DISABLE_SYMLINKS", "HF_HUB_OFFLINE",
                             "HF_HUB_DISABLE_IMPLICIT_TOKEN", "TRANSFORMERS_OFFLINE", "http_proxy"})
      ::unsetenv(name);
    ::setenv("HF_HOME", (folder_ / "home").c_str(), 1);
    ::setenv("HF_ENDPOINT", server_.url().c_str(), 1);
    bytes_.resize(5 * kPieceBytes + 77);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>((i * 2654435761U) >> 13);
    server_.add_file("models/a/b", "w.bin", bytes_, true);
  }
  void TearDown() override {
    EXPECT_TRUE(server_.problems().empty()) << server_.problems().front();
    ShellTest::TearDown();
  }

  /// The one file of the cache whose name ends so; "" if there is none.
  fs::path cached(const std::string& ending) const {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder_ / "home", error), end; !error && it != end;
         it.increment(error))
      if (it->path().string().ends_with(ending)) return it->path();
    return {};
  }
  std::set<size_t> pieces_that_came() const {
    std::set<size_t> came;
    const std::string marks = bytes_of(cached(".pieces.tycho.incomplete"));
    for (size_t i = 0; i < marks.size(); ++i)
      if (marks[i] == '1') came.insert(i);
    return came;
  }
  Outcome with_fault(const std::string& fault, const std::string& command) const {
    return here("export LD_PRELOAD=" TYCHO_FAULT_SHIM " TYCHO_FAULT='rank=-1,times=0," + fault + "'; " +
                command);
  }

  testing::HubServer server_;
  std::string bytes_;
};

TEST_F(FetchTest, GoesOnAfterKillMinus9WithThePiecesThatAreMissing) {
  std::mutex mutex;
  std::set<size_t> asked;
  bool is_slow = true;
  server_.set_faults({}, [&](const SeenRequest& request) -> std::optional<ServerReply> {
    const std::lock_guard lock(mutex);
    const size_t piece = std::stoull(request.headers.at("range").substr(6)) / kPieceBytes;
    asked.insert(piece);
    if (is_slow && piece >= 3) return ServerReply{.status = 206, .body = "x", .hang_s = 600};
    return std::nullopt;
  });
  pid_t child = 0;
  std::string program = TYCHO_PROGRAM, verb = "fetch", name = "hf://a/b/w.bin";
  char* arguments[] = {program.data(), verb.data(), name.data(), nullptr};
  ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  while (pieces_that_came().size() < 3 && ::waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(pieces_that_came(), (std::set<size_t>{0, 1, 2}));
  {
    const std::lock_guard lock(mutex);
    asked.clear();
    is_slow = false;
  }
  const Outcome again = here("tycho fetch hf://a/b/w.bin");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(asked, (std::set<size_t>{3, 4, 5}));
  EXPECT_TRUE(bytes_of(cached("/w.bin")) == bytes_);
  EXPECT_EQ(cached(".incomplete"), "");
}

TEST_F(FetchTest, TwoAtOnceAreRightWithoutLocksAndWithoutLinks) {
  for (const char* links : {"0", "1"}) {
    ::setenv("HF_HUB_DISABLE_SYMLINKS", links, 1);
    for (int round = 0; round < 3; ++round) {
      fs::remove_all(folder_ / "home");
      const Outcome both = with_fault("call=create,path=.lock,do=eio",
                                      "tycho fetch hf://a/b & one=$!; tycho fetch hf://a/b && wait $one");
      ASSERT_EQ(both.code, 0) << both.output;
      EXPECT_TRUE(bytes_of(cached("/w.bin")) == bytes_);
      EXPECT_EQ(fs::is_symlink(cached("/w.bin")), links[0] == '0');
      EXPECT_EQ(cached(".tmp"), "");
    }
  }
  ::unsetenv("HF_HUB_DISABLE_SYMLINKS");
  fs::remove_all(folder_ / "home");
  const Outcome refused = with_fault("call=symlink,path=home,do=eio", "tycho fetch hf://a/b");
  ASSERT_EQ(refused.code, 0) << refused.output;
  EXPECT_FALSE(fs::is_symlink(cached("/w.bin")));
  EXPECT_TRUE(bytes_of(cached("/w.bin")) == bytes_);
}

TEST_F(FetchTest, OneOfTwoDownloadsAndTheOtherReadsTheCache) {
  const Outcome both = here("tycho fetch hf://a/b & one=$!; tycho fetch hf://a/b && wait $one");
  ASSERT_EQ(both.code, 0) << both.output;
  int num_pieces = 0;
  for (const std::string& line : server_.requests()) num_pieces += line.starts_with("second GET");
  EXPECT_EQ(num_pieces, 6);
}

TEST_F(FetchTest, AFullDiskIsNamedAndWhatCameIsKept) {
  for (const char* call : {"call=pwrite,path=.tycho.incomplete,nth=5", "call=rename,path=/refs/main,nth=1"}) {
    const Outcome outcome = with_fault(std::string(call) + ",do=enospc", "tycho fetch hf://a/b");
    EXPECT_EQ(outcome.code, 15) << outcome.output;
    EXPECT_CONTAINS(outcome.output, "the disk is full: free room, or set HF_HUB_CACHE");
    fs::remove_all(folder_ / "home/hub/models--a--b/refs");
  }
  EXPECT_GE(pieces_that_came().size(), 1u);
  ASSERT_EQ(here("tycho fetch hf://a/b").code, 0);
  EXPECT_TRUE(bytes_of(cached("/w.bin")) == bytes_);
}

TEST_F(FetchTest, TheTokenIsInNoFileAndNoMessage) {
  ::setenv("HF_TOKEN", kToken, 1);
  server_.token = kToken;
  write("A text of some length, so that there are a few samples of tokens in it.\n", "a.txt");
  ASSERT_EQ(here("tycho tokenizer train a.txt --vocab-size 260 --out tok.json && tycho data convert a.txt "
                 "--tokenizer tok.json --no-separator --concat-tokens 8 --split train --out far")
                .code,
            0);
  for (const auto& entry : fs::directory_iterator(folder_ / "far/train"))
    server_.add_file("datasets/a/c", "train/" + entry.path().filename().string(), bytes_of(entry.path()),
                     entry.path().extension() == ".mds");
  write(
      "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\n"
      "r.model = t.model.llama { width = 32, heads = 2, layers = 1, ffn_width = 64, vocab_size = 260 }\n"
      "r.optimizer = t.optim.adamw { lr = 1e-3 }\n"
      "r.train_data = t.data.mds { remote = \"hf://datasets/a/c\", local_dir = \"near\", split = \"train\" "
      "}\n"
      "r.seq_len, r.global_batch, r.max_duration, r.run_dir = 8, \"1sp\", \"2ba\", \"run\"\nreturn r\n");
  std::string said;
  for (const char* command :
       {"tycho fetch hf://a/b --trace", "tycho fetch x.lua", "tycho fetch hf://a/absent --trace",
        "HF_ENDPOINT=http://u:$HF_TOKEN@h tycho fetch hf://a/b", "tycho fetch hf://a/b@$HF_TOKEN",
        "HF_TOKEN=\"$HF_TOKEN \"x tycho fetch hf://a/b"}) {
    const Outcome outcome = here(command);
    said += outcome.output;
    EXPECT_EQ(outcome.output.find(kToken), std::string::npos) << command << "\n" << outcome.output;
    if (std::string(command).find("x.lua") != std::string::npos) {
      EXPECT_EQ(outcome.code, 0) << outcome.output;
    }
  }
  EXPECT_TRUE(fs::exists(folder_ / "near/train/index.json"));
  const Outcome found = here(std::string("grep -rl ") + kToken + " .");
  EXPECT_EQ(found.code, 1) << found.output << said;
  int num_with_token = 0;
  for (const std::string& line : server_.requests()) num_with_token += line.ends_with(" token");
  EXPECT_GT(num_with_token, 0);
}

}  // namespace
}  // namespace tycho
