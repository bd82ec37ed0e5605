// Opening the engine, handing a run over, and signals while it runs; with an engine that computes nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <thread>
#include <vector>

#include "tests/host/shell.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class EngineTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
  }

  /// `ignored`: a signal that the program ignores from its start; 0 for none.
  pid_t start(const std::vector<std::string>& arguments, int ignored = 0) {
    fs::remove(folder_ / "log");
    const pid_t child = fork();
    if (child != 0) return child;
    if (ignored != 0) signal(ignored, SIG_IGN);
    const int log = open((folder_ / "log").c_str(), O_WRONLY | O_CREAT, 0600),
              null = open("/dev/null", O_RDONLY);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
      _exit(99);
    std::vector<char*> argv = {const_cast<char*>("tycho")};
    for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
    argv.push_back(nullptr);
    execv((folder_ / "bin/tycho").c_str(), argv.data());
    _exit(98);
  }
  static int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string log() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Waits until the fake engine says that it runs.
  void wait_for_engine() const {
    for (int i = 0; i < 12000 && log().find("OMP_WAIT_POLICY") == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  int run_with_signals(std::initializer_list<int> signals, int ignored = 0) {
    const pid_t child = start({"run", demo_, "seed=99"}, ignored);
    wait_for_engine();
    for (const int number : signals) {
      kill(child, number);
      wait_until_taken(child);
    }
    return finish(child);
  }
  /// Waits until no signal is on its way: of two that are, the handler of the second runs first.
  static void wait_until_taken(pid_t child) {
    const std::string path = "/proc/" + std::to_string(child) + "/status";
    for (int i = 0; i < 12000; ++i) {
      std::ifstream status(path);
      for (std::string line; std::getline(status, line);)
        if (line.rfind("ShdPnd:", 0) == 0 &&
            line.find_first_not_of("0", line.find_last_of(" \t") + 1) == std::string::npos)
          return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const std::string demo_ = TYCHO_SOURCE_DIR "/recipes/demo.lua";
};

TEST_F(EngineTest, RunHandsOverTheResolvedRecipe) {
  unsetenv("OMP_NUM_THREADS");
  unsetenv("OMP_WAIT_POLICY");
  EXPECT_EQ(finish(start({"run", demo_, "threads=3", "optimizer.lr=0.5"})), 0);
  EXPECT_CONTAINS(log(), "pins=2 sources=1 argv=optimizer.lr=0.5 tty=0");
  EXPECT_CONTAINS(log(), "\"lr\":0.5");
  EXPECT_CONTAINS(log(), "OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive");
}

TEST_F(EngineTest, TheUsersThreadSettingsWin) {
  setenv("OMP_NUM_THREADS", "7", 1);
  EXPECT_EQ(finish(start({"run", demo_, "threads=3"})), 0);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_CONTAINS(log(), "OMP_NUM_THREADS=7");
}

TEST_F(EngineTest, RefusesAnEngineBuiltFromOtherHeaders) {
  setenv("TYCHO_FAKE_OLD_ENGINE", "1", 1);
  EXPECT_EQ(finish(start({"run", demo_})), 1);
  unsetenv("TYCHO_FAKE_OLD_ENGINE");
  EXPECT_CONTAINS(log(), "got an engine built from others: rebuild both, or install both again");
}

TEST_F(EngineTest, SignalsAskForAStopAndTheFirstOneWins) {
  EXPECT_EQ(run_with_signals({SIGTERM}), 143);
  EXPECT_EQ(run_with_signals({SIGUSR1}), 138);
  EXPECT_EQ(run_with_signals({SIGINT}), 130);
  EXPECT_EQ(run_with_signals({SIGUSR2}), 140);
  EXPECT_EQ(run_with_signals({SIGHUP}), 129);
  EXPECT_EQ(run_with_signals({SIGXCPU}), 152);
  EXPECT_EQ(run_with_signals({SIGTERM, SIGTERM, SIGTERM}), 143);
  EXPECT_EQ(run_with_signals({SIGUSR1, SIGTERM}), 138);
  EXPECT_EQ(run_with_signals({SIGPIPE, SIGXFSZ, SIGTERM}), 143);
}

TEST_F(EngineTest, ASignalThatWasIgnoredAtTheStartStaysIgnored) {
  for (const int ignored : {SIGHUP, SIGINT, SIGUSR2})
    EXPECT_EQ(run_with_signals({ignored, SIGTERM}, ignored), 143) << strsignal(ignored);
}

TEST_F(EngineTest, ASecondCtrlCAtATerminalEndsAtOnce) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) GTEST_SKIP() << "this machine has no pseudo terminals (is /dev/pts mounted?)";
  if (child == 0) {
    execl((folder_ / "bin/tycho").c_str(), "tycho", "run", "--plain", demo_.c_str(), "seed=99", nullptr);
    _exit(98);
  }
  std::string seen;
  const auto read_until = [&](const char* text) {
    char c = 0;
    while (seen.find(text) == std::string::npos && read(terminal, &c, 1) == 1) seen += c;
  };
  read_until("OMP_WAIT_POLICY");
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  read_until("again within 2 s ends at once");
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  read_until("interrupted twice");
  EXPECT_CONTAINS(seen, "interrupted twice");
  EXPECT_EQ(finish(child), 130);
  close(terminal);
}

TEST_F(EngineTest, ThreadsThatTheSystemRefusesAreMissedBeforeTheEngineNeedsThem) {
  setenv("LD_PRELOAD", TYCHO_FEW_THREADS, 1);
  setenv("TYCHO_MOST_THREADS", "5", 1);
  const int code = finish(start({"run", demo_, "threads=3"}));
  unsetenv("LD_PRELOAD");
  unsetenv("TYCHO_MOST_THREADS");
  EXPECT_EQ(code, 14) << log();
  EXPECT_CONTAINS(log(), "[engine] expected room for 11 threads, got ");
  EXPECT_CONTAINS(log(), "or take fewer with threads=N");
}

TEST_F(EngineTest, AMissingEngineIsNamed) {
  fs::remove(folder_ / "lib/libtycho_engine.so");
  EXPECT_EQ(finish(start({"run", demo_})), 1);
  EXPECT_CONTAINS(log(), "[engine] libtycho_engine.so is neither in " + (folder_ / "lib").string());
  EXPECT_EQ(finish(start({"check", demo_})), 0);
}

TEST_F(EngineTest, AnEngineThatCannotBeOpenedSaysWhy) {
  std::ofstream(folder_ / "lib/libtycho_engine.so") << "not a library";
  EXPECT_EQ(finish(start({"run", demo_})), 1);
  EXPECT_CONTAINS(log(), "[engine] cannot open");
}

TEST_F(EngineTest, ErrorsOfTheEngineKeepTheirExitCode) {
  EXPECT_EQ(finish(start({"run", demo_, "seed=99", "resume=none"})), 15);
  EXPECT_CONTAINS(log(), "[fake] full\n");
}

TEST_F(EngineTest, GenerateStreamsAfterThePrompt) {
  EXPECT_EQ(finish(start({"generate", "runs/x", "--prompt", "once"})), 0);
  EXPECT_EQ(log(), "once and runs/x\n");
}

TEST_F(EngineTest, GenerateWritesControlsAsTheyAreOnlyWhenAsked) {
  const std::string prompt = "\x1b[31mred \u202Etxt.exe\u2069";
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", prompt})), 0);
  EXPECT_EQ(log(), "\\u001b[31mred \\u202etxt.exe\\u2069 and x\n");
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", prompt, "--raw"})), 0);
  EXPECT_EQ(log(), prompt + " and x\n");
}

TEST_F(EngineTest, GenerateTakesPromptsOfAFileAndSeveralStopStrings) {
  std::ofstream(folder_ / "prompts.txt") << "one\n\ntwo\r\n";
  EXPECT_EQ(finish(start({"generate", "x", "--prompts", folder_ / "prompts.txt", "--samples", "2", "--stop",
                          "a,b", "--stop", "\n"})),
            0);
  std::string wanted;
  for (const char* text : {"1, sample 1\none", "1, sample 2\none", "2, sample 1\ntwo", "2, sample 2\ntwo"})
    wanted += std::string("--- prompt ") + text + " and x stop=a,b stop=\n\n";
  EXPECT_EQ(log(), wanted);
}

TEST_F(EngineTest, GenerateWritesLinesOfJson) {
  std::ofstream(folder_ / "prompts.jsonl") << R"({"prompt": "a\nb", "id": 7})"
                                           << "\n"
                                           << R"({"prompt": "c"})";
  EXPECT_EQ(
      finish(start({"generate", "x", "--prompts", folder_ / "prompts.jsonl", "--ignore-eos", "--json"})), 0);
  EXPECT_EQ(log(), R"({"prompt":"a\nb","sample":1,"text":" and x","tokens":3,"finish":"length"}
{"prompt":"c","sample":1,"text":" and x","tokens":3,"finish":"length"}
)");
}

TEST_F(EngineTest, GenerateSaysWhenTheModelsLongestSequenceEndsAText) {
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--ignore-eos", "--max-tokens", "500"})), 0);
  EXPECT_CONTAINS(log(), "warning: the text ends after 3 of 500 tokens, the model's longest sequence\n");
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--ignore-eos", "--max-tokens", "3"})), 0);
  EXPECT_EQ(log(), "a and x\n");
}

TEST_F(EngineTest, GenerateWarnsOfAnotherTokenizer) {
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--tokenizer", "other.json"})), 0);
  EXPECT_CONTAINS(log(), "warning: other.json is another tokenizer\n");
}

TEST_F(EngineTest, GenerateAddsProbabilitiesToItsJson) {
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--json", "--logprobs"})), 0);
  EXPECT_CONTAINS(log(), R"("token_ids":[7,9],"logprobs":[-0.5,-1.5])");
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--logprobs"})), 2);
}

TEST_F(EngineTest, ChatAnswersTheLinesOfAPipe) {
  std::ofstream(folder_ / "lines")
      << "one\n\ntwo\r\n/temp 0.5\n\"\"\"a\nb\n\"\"\"\n/reset\nthree\n/system Be brief.\nfour\n/quit\nfive\n";
  EXPECT_EQ(here("bin/tycho chat x --template chatml < lines 2> notes").output,
            "one to user of 1 at 1\ntwo to user of 3 at 1\na\nb to user of 5 at 0.5\n"
            "three to user of 1 at 0.5\nfour to system of 2 at 0.5\n");
  EXPECT_EQ(read_file(folder_ / "notes"),
            "(temperature 0.5)\n(the conversation starts anew)\n(system message set; the conversation starts "
            "anew)\n");
  EXPECT_EQ(here("printf 'one\nlong\nmore\n' | bin/tycho chat x --template none --system S 2> notes").output,
            "one to system of 2 at 1\nlong to system of 4 at 1\nmore to system of 4 at 1\n");
  EXPECT_CONTAINS(read_file(folder_ / "notes"), "64 tokens: the oldest 2 messages were dropped");
  EXPECT_CONTAINS(here("printf '\"\"\"not\nclosed' | bin/tycho chat x --template none").output,
                  "not\nclosed to user");
}

TEST_F(EngineTest, ChatStopsAPipeAtALineThatCannotBeUsed) {
  const Outcome unknown = here("printf '/tmep 1\nx\n' | bin/tycho chat x --template none");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_CONTAINS(unknown.output, "got \"/tmep\"");
  EXPECT_CONTAINS(unknown.output, "/temp");
  EXPECT_CONTAINS(here("printf '/temp hot\n' | bin/tycho chat x --template none").output,
                  "/temp expected a number from 0 on");
  EXPECT_EQ(here("printf 'too long\n' | bin/tycho chat x --template none").code, 2);
  EXPECT_EQ(here("bin/tycho chat x --template gpt </dev/null").code, 2);
  EXPECT_EQ(here("bin/tycho chat </dev/null").code, 2);
}

TEST_F(EngineTest, ChatSaysThatAModelHasNoTemplate) {
  EXPECT_CONTAINS(here("echo hi | bin/tycho chat x").output,
                  "it has no chat template, so it continues what you write");
}

TEST_F(EngineTest, CtrlCStopsAnAnswerAndKeepsTheConversation) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) GTEST_SKIP() << "this machine has no pseudo terminals (is /dev/pts mounted?)";
  if (child == 0) {
    setenv("TERM", "dumb", 1);
    execl((folder_ / "bin/tycho").c_str(), "tycho", "chat", "x", "--template", "chatml", nullptr);
    _exit(98);
  }
  std::string seen;
  const auto read_until = [&](const char* text) {
    char c = 0;
    while (seen.find(text) == std::string::npos && read(terminal, &c, 1) == 1) seen += c;
    EXPECT_CONTAINS(seen, text);
    seen.clear();
  };
  const auto type = [&](const std::string& text) {
    EXPECT_EQ(::write(terminal, text.data(), text.size()), std::ssize(text));
  };
  read_until(">>> ");
  type("/nothing\r");
  read_until("got \"/nothing\"");
  read_until(">>> ");
  type("wait\r");
  read_until("wait to");
  type("\x03");
  read_until("(interrupted; the conversation goes on with what was written)");
  read_until(">>> ");
  type("more\r");
  read_until("more to user of 3 at 1");
  read_until(">>> ");
  type("half a line\x03");
  read_until("^C");
  read_until(">>> ");
  type("\x04");
  EXPECT_EQ(finish(child), 0);
}

TEST_F(EngineTest, EvalPrintsALineOrAnObject) {
  EXPECT_EQ(finish(start({"eval", "runs/x", "--data", "d", "--split", "val"})), 0);
  EXPECT_EQ(log(), "runs/x: step 7\nloss 0.500000  perplexity 1.6487  10 tokens  2.0 s\n");
  EXPECT_EQ(finish(start({"eval", "runs/x", "--data", "d", "--json"})), 0);
  EXPECT_CONTAINS(log(), "\"loss\": 0.5,");
  EXPECT_EQ(log().find("sets"), std::string::npos);
}

TEST_F(EngineTest, EvalWithoutDataPrintsALineForEverySetOfTheRecipe) {
  EXPECT_EQ(finish(start({"eval", "runs/x"})), 0);
  EXPECT_EQ(log(),
            "runs/x: step 7\n"
            "books  loss 1.500000  perplexity 4.4817  30 tokens  1.0 s\n"
            "c4     loss 0.500000  perplexity 1.6487  10 tokens  2.0 s\n"
            "total  loss 1.250000  perplexity 3.4903  40 tokens  3.0 s\n");
  EXPECT_EQ(finish(start({"eval", "runs/x", "--batches", "50", "--json"})), 0);
  const Json json = parse_json(log(), "eval");
  EXPECT_EQ(json.at("tokens"), 80);
  EXPECT_EQ(json.at("sets").at("c4").at("tokens"), 50);
  EXPECT_EQ(json.at("sets").at("books").at("loss"), 1.5);
  EXPECT_EQ(finish(start({"eval", "runs/x", "--split", "val"})), 2);
}

TEST_F(EngineTest, NumbersThatAreNotFiniteAreAnswersWithAWarning) {
  EXPECT_EQ(finish(start({"eval", "runs/x", "--data", "overflows"})), 0);
  EXPECT_CONTAINS(log(), "warning: the loss of runs/x is nan: ");
  EXPECT_CONTAINS(log(), "loss nan  perplexity nan  10 tokens");
  const Outcome as_json = here("./bin/tycho eval runs/x --data overflows --json 2>/dev/null");
  EXPECT_EQ(as_json.code, 0);
  const Json json = parse_json(as_json.output, "eval");
  EXPECT_TRUE(json.at("loss").is_null());
  EXPECT_EQ(json.at("not_finite"), (Json{{"loss", "nan"}, {"perplexity", "nan"}}));

  const Outcome harness =
      here(R"(printf '{"context":"a","continuation":"b"}\n{"context":"overflows","continuation":"b"}\n' | )"
           "./bin/tycho eval runs/x --loglikelihood 2>&1");
  EXPECT_EQ(harness.code, 0);
  EXPECT_CONTAINS(harness.output,
                  "{\"logprob\":-1.5,\"is_greedy\":true}\n"
                  "{\"logprob\":null,\"not_finite\":{\"logprob\":\"nan\"},\"is_greedy\":false}\n");
  EXPECT_CONTAINS(harness.output, "warning: 1 of 2 log-likelihoods are not finite");

  write("return { tasks = { { label = 'words', path = 'words.jsonl', type = 'language_modeling' } } }",
        "tasks.lua");
  const Outcome tasks = here("./bin/tycho eval runs/x --icl tasks.lua 2>&1");
  EXPECT_EQ(tasks.code, 0) << tasks.output;
  EXPECT_CONTAINS(tasks.output,
                  "warning: 1 of 4 items of words/0-shot have a log-likelihood that is not finite");
  EXPECT_CONTAINS(tasks.output, "0.7500");
}

TEST_F(EngineTest, FollowGoesOnAfterACheckpointWhoseLossIsNotFinite) {
  const fs::path run_dir = folder_ / "runs/x", checkpoints = run_dir / "checkpoints";
  fs::create_directories(checkpoints);
  fs::copy(TYCHO_SOURCE_DIR "/tests/golden/old_checkpoint/step-000000004.b142597e",
           checkpoints / "step-000000004.b142597e");
  std::ofstream(run_dir / "events.jsonl") << R"({"kind":"run_start"})"
                                          << "\n"
                                          << R"({"kind":"run_end"})"
                                          << "\n";
  const Outcome followed = here("./bin/tycho eval runs/x --follow --data overflows 2>&1");
  EXPECT_EQ(followed.code, 0) << followed.output;
  EXPECT_CONTAINS(followed.output, "warning: the loss of step 4 is nan: ");
  EXPECT_CONTAINS(followed.output, "step 4: loss nan  perplexity nan\n");
  std::ifstream file(run_dir / "evals.jsonl");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  EXPECT_CONTAINS(line, R"("eval.loss":null,"not_finite":{"eval.loss":"nan","eval.perplexity":"nan"})");
}

TEST_F(EngineTest, EmaAsksForTheAverageAndSaysSo) {
  EXPECT_EQ(finish(start({"eval", "runs/x", "--ema"})), 0);
  EXPECT_EQ(log(),
            "runs/x: step 7, average of the weights\nloss 0.250000  perplexity 1.2840  10 tokens  2.0 s\n");
  EXPECT_EQ(finish(start({"eval", "runs/x", "--ema", "--json"})), 0);
  EXPECT_EQ(parse_json(log(), "eval").at("weights"), "ema");
  EXPECT_EQ(finish(start({"eval", "runs/x", "--json"})), 0);
  EXPECT_FALSE(parse_json(log(), "eval").contains("weights"));
  EXPECT_EQ(finish(start({"generate", "runs/x", "--prompt", "once", "--ema"})), 0);
  EXPECT_CONTAINS(log(), "with the average of the weights\n");
  EXPECT_CONTAINS(log(), "once and the average of runs/x\n");
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--ema", "--json"})), 0);
  EXPECT_CONTAINS(log(), R"("weights":"ema")");
  EXPECT_EQ(finish(start({"generate", "x", "--prompt", "a", "--ema", "--without-adapters"})), 2);
  EXPECT_CONTAINS(log(), "--ema is the average of the adapters, and --without-adapters leaves them out");
}

TEST_F(EngineTest, VersionAsksTheEngineOnlyOnRequest) {
  EXPECT_EQ(finish(start({"version", "--engine", "--json"})), 0);
  EXPECT_CONTAINS(log(), "\"libtorch\": \"none\"");
}

}  // namespace
}  // namespace tycho
