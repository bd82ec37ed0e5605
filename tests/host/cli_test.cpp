// The program as a person or a scheduler runs it: output, exit codes, signals, speed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class CliTest : public ShellTest {
 protected:
  const std::string demo_ = TYCHO_SOURCE_DIR "/recipes/demo.lua";
};

TEST_F(CliTest, HelpNamesEveryVerbAndEveryVerbHasHelpWithAnExample) {
  const Outcome help = shell("tycho --help");
  EXPECT_EQ(help.code, 0);
  for (const char* verb :
       {"run", "launch", "check", "config", "schema", "plan", "types", "fetch", "test", "data", "tokenizer",
        "eval", "generate", "chat", "convert", "ckpt", "completion", "version"}) {
    EXPECT_CONTAINS(help.output, std::string("  ") + verb + " ");
    const Outcome own = shell(std::string("tycho ") + verb + " --help");
    EXPECT_EQ(own.code, 0);
    EXPECT_CONTAINS(own.output, std::string("Example:\n  tycho ") + verb);
  }
}

TEST_F(CliTest, HelpOfAVerbIsTheSameInEveryOrder) {
  const std::string own = shell("tycho run --help").output;
  for (const char* order : {"help run", "--help run", "-h run", "run -h"}) {
    const Outcome help = shell(std::string("tycho ") + order);
    EXPECT_EQ(help.code, 0) << order;
    EXPECT_EQ(help.output, own) << order;
  }
  EXPECT_EQ(shell("tycho help").output, shell("tycho --help").output);
}

TEST_F(CliTest, HelpFitsTheTerminal) {
  for (const char* verb :
       {"", "run", "launch", "ckpt", "report", "completion", "generate", "chat", "data convert"}) {
    std::istringstream lines(
        shell(std::string("COLUMNS=80; export COLUMNS; tycho ") + verb + " --help </dev/null").output);
    for (std::string line; std::getline(lines, line);) {
      const bool is_command = line.find("tycho ") != std::string::npos;
      EXPECT_TRUE(is_command || line.size() <= 80) << verb << ": " << line;
    }
  }
  const auto num_lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  EXPECT_GT(num_lines(shell("COLUMNS=60; export COLUMNS; tycho run --help </dev/null").output),
            num_lines(shell("COLUMNS=120; export COLUMNS; tycho run --help </dev/null").output));
}

TEST_F(CliTest, HelpAndVersionHaveTheirUsualShortForms) {
  EXPECT_EQ(shell("tycho -V").output, shell("tycho version").output);
  EXPECT_EQ(shell("tycho run help").output, shell("tycho run --help").output);
  EXPECT_EQ(shell("tycho data convert help").output, shell("tycho data convert --help").output);
  EXPECT_CONTAINS(here("echo 'x = ' > help; tycho check help").output, "help:2") << "a recipe of that name";
}

TEST_F(CliTest, HelpOfASubverbHasItsOptionsAlone) {
  const std::string convert = shell("tycho data convert --help").output;
  EXPECT_CONTAINS(convert, "--concat-tokens");
  EXPECT_EQ(convert.find("--eos-token "), std::string::npos) << "it is an option of stats";
  EXPECT_EQ(convert.find("tycho data inspect"), std::string::npos);
  EXPECT_EQ(shell("tycho help data convert").output, convert);
  const std::string all = shell("tycho data --help").output;
  EXPECT_CONTAINS(all, "tycho data inspect DIR");
  EXPECT_EQ(all.find("--concat-tokens"), std::string::npos);
  for (const char* help : {"tycho --help", "tycho run --help", "tycho data convert --help"})
    EXPECT_EQ(shell(std::string(help) + " | grep -c ' $'").output, "0\n")
        << help << ": blanks at the end of a line";
}

TEST_F(CliTest, UsageErrorsExitWithTwo) {
  EXPECT_EQ(shell("tycho").code, 2);
  const Outcome unknown = shell("tycho chek x.lua");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_CONTAINS(unknown.output, "did you mean \"check\"?");
  EXPECT_EQ(shell("tycho check").code, 2);
  EXPECT_EQ(shell("tycho check --nonsense x.lua").code, 2);
  EXPECT_EQ(shell("tycho data convrt").code, 2);
  EXPECT_EQ(shell("tycho generate x --prompt a --top-p 3").code, 2);
  EXPECT_EQ(shell("tycho generate x --prompt a --max-tokens many").code, 2);
  EXPECT_EQ(shell("tycho generate x --prompt a --stop \"\"").code, 2);
  EXPECT_CONTAINS(shell("tycho generate x").output, "expected either --prompt TEXT or --prompts FILE");
  EXPECT_EQ(shell("tycho generate x --prompt a --prompts b").code, 2);
  EXPECT_EQ(shell("tycho eval").code, 2);
  EXPECT_CONTAINS(shell("tycho eval x --split val").output, "--split is a folder inside --data");
}

TEST_F(CliTest, AnOptionThatOnlyRunsCouldHaveIsAnsweredForTheVerb) {
  for (const char* verb : {"data convert", "tokenizer train", "convert", "import", "ckpt reshard"}) {
    const Outcome force = shell(std::string("tycho ") + verb + " x --force");
    EXPECT_EQ(force.code, 2) << verb;
    EXPECT_CONTAINS(force.output, "nothing that exists is overwritten: remove it first");
    EXPECT_EQ(force.output.find("resume=none"), std::string::npos) << force.output;
  }
  EXPECT_CONTAINS(shell("tycho check x.lua --overwrite").output, "resume=none");
  EXPECT_CONTAINS(shell("tycho launch --gpus=4").output, "tycho launch -n 4 run RECIPE");
}

TEST_F(CliTest, CheckWarnsOfSamplesThatDoNotFit) {
  ASSERT_EQ(here("PATH=$(dirname " TYCHO_PROGRAM "):$PATH " TYCHO_SOURCE_DIR "/tests/make_tiny_data 32").code,
            0);
  const std::string check =
      "TYCHO_DEMO_DATA=data tycho check " + demo_ + " model.vocab_size=384 train_data.recut=false seq_len=";
  const Outcome other = here(check + "16");
  EXPECT_EQ(other.code, 0) << other.output;
  EXPECT_CONTAINS(other.output, "has 32 tokens, the recipe's sequence length is 16");
  EXPECT_CONTAINS(other.output, "train_data.recut = true");
  EXPECT_EQ(here(check + "32").output.find("sequence length"), std::string::npos);
}

TEST_F(CliTest, RecipeErrorsExitWithTenAndStartNothing) {
  const std::string file =
      write("local t = require \"tycho\"\nlocal r = t.recipe \"x\"\nr.seq_lem = 1\nreturn r\n");
  for (const char* verb : {"check", "run", "plan", "config"}) {
    const Outcome wrong = shell(std::string("cd ") + folder_.string() + " && tycho " + verb + " x.lua");
    EXPECT_EQ(wrong.code, 10) << verb;
    EXPECT_CONTAINS(
        wrong.output,
        "x.lua:3:3: unknown key  seq_lem\n   3 | r.seq_lem = 1\n     |   ^^^^^^^ did you mean  seq_len");
    EXPECT_CONTAINS(wrong.output, "nothing was started");
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  EXPECT_EQ(shell("tycho check " + demo_ + " optimizer.lr=-1").code, 10);
  EXPECT_EQ(shell("tycho check " + (folder_ / "none.lua").string()).code, 10);
  EXPECT_EQ(shell("tycho check " + write("local t = require 'tycho'\n")).code, 10);
  EXPECT_EQ(shell("tycho check " + write("error('no')")).code, 10);
}

TEST_F(CliTest, ArgumentsAreNumberedAsTheyStand) {
  EXPECT_CONTAINS(shell("tycho check --json " + demo_ + " seed=1 sed=2").output,
                  "argument 4  sed=2: unknown key");
}

TEST_F(CliTest, EveryShippedRecipePasses) {
  for (const auto& entry : fs::directory_iterator(TYCHO_SOURCE_DIR "/recipes")) {
    if (entry.is_directory())
      continue;  // sweeps, and finetunes of weights that are not here: tests of their own
    const Outcome checked = shell("tycho check " + entry.path().string());
    EXPECT_EQ(checked.code, 0) << checked.output;
  }
}

TEST_F(CliTest, AllProcessesAgreeOnTheHash) {
  std::set<std::string> outputs;
  for (int i = 0; i < 20; ++i) outputs.insert(shell("tycho check --json " + demo_ + " seed=3").output);
  EXPECT_EQ(outputs.size(), 1u);
  EXPECT_NE(shell("tycho check " + demo_ + " seed=4").output,
            shell("tycho check " + demo_ + " seed=3").output);
}

TEST_F(CliTest, ConfigShowsEveryKeyOfTheChosenKindOnce) {
  const Outcome shown = shell("tycho config " TYCHO_SOURCE_DIR "/recipes/mpt-125m.lua model --json");
  EXPECT_EQ(shown.code, 0);
  std::map<std::string, int> seen;
  for (const Json& row : Json::parse(shown.output)) ++seen[row.at("path").get<std::string>()];
  EXPECT_EQ(seen["model.rope_scaling.type"], 1);
  EXPECT_EQ(seen["model.init.name"], 1);
  const Outcome llama = shell("tycho config " + demo_ + " model");
  EXPECT_EQ(llama.output.find("model.init."), std::string::npos) << "a key of another family";
}

TEST_F(CliTest, ErrorsKeepTheirCodeWhenOutputIsClosed) {
  EXPECT_EQ(shell("tycho check absent.lua 2>&-").code, 10);
  EXPECT_EQ(shell("tycho chek 2>&-").code, 2);
}

TEST_F(CliTest, ConfigShowsWhereAValueComesFrom) {
  const Outcome why = shell("tycho config " + demo_ + " optimizer.lr=1e-3 --why optimizer.lr");
  EXPECT_EQ(why.code, 0);
  EXPECT_CONTAINS(why.output, "argument 2");
  EXPECT_CONTAINS(why.output, "hidden by an argument");
  EXPECT_CONTAINS(shell("tycho config optimizer").output, "optimizer.lr");
  EXPECT_CONTAINS(shell("tycho config " + demo_ + " optimizer --json").output, "\"path\": \"optimizer.lr\"");
  EXPECT_EQ(shell("tycho config " + demo_ + " optimzer").code, 2);
}

TEST_F(CliTest, CtrlCNamesTheLineAndExitsWith130) {
  const std::string file = write(
      "local t = require 'tycho'\nlocal i = 0\nwhile true do i = i + 1 if i == 1 then print('ready') end "
      "end\n");
  const auto log = [&] {
    std::ifstream log_file(folder_ / "log");
    return std::string{std::istreambuf_iterator<char>(log_file), {}};
  };
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(open((folder_ / "log").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO) < 0) _exit(99);
    execl(TYCHO_PROGRAM, "tycho", "check", file.c_str(), nullptr);
    _exit(98);
  }
  for (int i = 0; i < 12000 && log().find("ready") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_CONTAINS(log(), "interrupted at " + file + ":3");
}

TEST_F(CliTest, DefineVerbsLoadNoLibTorch) {
  for (const std::string& verb :
       {std::string("--help"), "check " + demo_, "plan " + demo_, "config " + demo_}) {
    const Outcome traced = shell("LD_DEBUG=files tycho " + verb);
    EXPECT_EQ(traced.output.find("libtorch"), std::string::npos) << verb;
  }
}

TEST_F(CliTest, ClosedStandardStreamsAreNotTakenByFiles) {
  const std::string made = (folder_ / "made").string();
  // Whatever the program opened first would be descriptor 1, and the list of files would go into it.
  EXPECT_EQ(shell("tycho init " + made + " <&- >&- 2>&-").code, 15) << "the answer could not be written";
  const Outcome whole = shell("tycho init " + made + "2");
  ASSERT_EQ(whole.code, 0) << whole.output;
  EXPECT_EQ(shell("diff -r " + made + " " + made + "2").output, "");
  EXPECT_EQ(shell("tycho check " + demo_ + " <&- 2>&-").code, 0);
}

TEST_F(CliTest, ASmallStackIsEnlargedOrNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more stack before main()";
#endif
  const Outcome small = shell("ulimit -Ss 64 && tycho check " + demo_);
  EXPECT_EQ(small.code, 0) << small.output;
  // Only root may raise a hard limit.
  const Outcome hard = shell("ulimit -s 64 && tycho check " + demo_);
  if (geteuid() == 0) {
    EXPECT_TRUE(hard.code == 0 || hard.code == 14) << hard.output;
  } else {
    EXPECT_EQ(hard.code, 14);
    EXPECT_CONTAINS(hard.output,
                    "[tycho] expected a stack of at least 1 MiB, got less: raise the limit, `ulimit -s");
  }
}

TEST_F(CliTest, ADeletedWorkingFolderIsNamed) {
  const std::string there = "mkdir -p gone && cd gone && rmdir ../gone && tycho ";
  for (const char* verb :
       {"check x.lua", "run x.lua", "launch -n 2 run x.lua", "sweep s.lua", "plan x.lua", "report runs/x",
        "generate runs/x --prompt a", "data inspect data", "config", "repl -e 1", "test ."}) {
    const Outcome gone = here(there + verb);
    EXPECT_EQ(gone.code, 12) << verb;
    EXPECT_EQ(gone.output,
              "[tycho] expected a working folder that exists, got one that was removed: cd into another\n");
  }
  EXPECT_EQ(here(there + "run --help").code, 0);
}

TEST_F(CliTest, NoVerbPassesOnAnEscapeSequenceOfAName) {
  const std::string name =
      "\x1b[31m\xc2\x9b"
      "2J\u202Egnp";
  fs::create_directories(folder_ / name);
  write("not JSON \x1b[1m", name + "/index.json");
  write(R"({"model_type": "llama", "\u001b[5mkey": 1, "\u202eother": 2})", name + "/config.json");
  write("{", name + "/tokenizer.json");
  write("step \x1b[7m\n", name + "/log.txt");
  write("local t = require 'tycho'\nprint('\\27[1m')\nreturn t.recipe '\\27[31mx'\n", name + "/x.lua");
  for (const char* verb : {"check %/x.lua",
                           "config %/x.lua",
                           "plan %/x.lua",
                           "run %/x.lua",
                           "rerun %",
                           "launch -n 2 run %/x.lua",
                           "attach %",
                           "ctl % tail",
                           "ctl % plot loss",
                           "sweep %/x.lua",
                           "sweep table %",
                           "import %/config.json",
                           "diff %/x.lua %/y.lua",
                           "report %",
                           "test %",
                           "data inspect %",
                           "data verify %",
                           "data stats %/index.json",
                           "data convert %/config.json --tokenizer %/tokenizer.json --out %/out",
                           "tokenizer inspect %/tokenizer.json",
                           "convert % %/out",
                           "ckpt ls %",
                           "ckpt verify %",
                           "eval %",
                           "generate % --prompt x",
                           "doctor %",
                           "% %"}) {
    std::string command = verb;
    for (size_t at; (at = command.find('%')) != std::string::npos;) command.replace(at, 1, "'" + name + "'");
    const std::string shown = here("tycho " + command).output;
    for (const char* control : {"\x1b", "\xc2\x9b", "\u202E"})
      EXPECT_EQ(shown.find(control), std::string::npos) << verb << "\n" << shown;
  }
}

TEST_F(CliTest, AnswersForProgramsKeepTheirMeaning) {
  // A pipe gets the text itself, JSON the same value.
  write(whole("r.run_name = 'a\u202Eb'\n"));
  EXPECT_CONTAINS(here("tycho config x.lua run_name").output, "\u202E");
  const Outcome json = here("tycho config x.lua run_name --json");
  EXPECT_EQ(parse_json(json.output, "config")[0].at("value"), "a\u202Eb");
}

TEST_F(CliTest, OutputSurvivesAPipeThatCloses) {
  EXPECT_EQ(shell("{ sleep 0.1; tycho config; echo \"code $?\" >&2; } | true").output, "code 141\n");
  const Outcome full = shell("tycho config > /dev/full");
  EXPECT_EQ(full.code, 15);
  EXPECT_CONTAINS(full.output, "cannot write the output: No space left");
  EXPECT_CONTAINS(shell("tycho version --json").output, "\"luajit\"");
}

TEST_F(CliTest, TestCountsPassedAndFailedSpecs) {
  std::ofstream(folder_ / "a_spec.lua")
      << "describe('a', function()\n  it('holds', function() expect(1).to_equal(1) end)\n"
         "  it('does not', function() expect(1).to_equal(2) end)\nend)\n";
  const Outcome tested = shell("tycho test " + folder_.string());
  EXPECT_EQ(tested.code, 1);
  EXPECT_CONTAINS(tested.output, "a_spec.lua:3  a does not\n  expected 2, got 1\n");
  EXPECT_CONTAINS(tested.output, "1 passed, 1 failed\n");
  EXPECT_EQ(shell("tycho test " + (folder_ / "none").string()).code, 2);
}

TEST_F(CliTest, EveryJsonAnswerIsOneValueAlsoOfACommandThatFails) {
  const std::string file = folder_ / "x.lua";
  std::ofstream(file)
      << "local t = require 'tycho'\nlocal r = t.recipe 'x'\nr.seed = 'a'\nr.sede = 1\nreturn r\n";
  const auto asked = [&](const std::string& command) {
    const Outcome outcome = shell(command + " --json 2>/dev/null");
    const Json json = Json::parse(outcome.output, nullptr, false);
    EXPECT_TRUE(json.is_structured()) << command << outcome.output;
    EXPECT_EQ(json.contains("error"), outcome.code != 0) << command << outcome.output;
    EXPECT_TRUE(outcome.code == 0 || json.at("error").at("code") == outcome.code) << command;
    return json;
  };
  const Json error = asked("tycho check " + file + " optimizer.lr=-1 log.evry=3ba").at("error");
  std::map<std::string, Json> by_path;
  for (const Json& one : error.at("problems")) by_path[one.value("path", "")] = one;
  const Json& seed = by_path.at("seed");
  EXPECT_EQ(seed.at("file"), file);
  EXPECT_EQ(seed.at("line"), 3);
  EXPECT_EQ(seed.at("column"), 10);
  EXPECT_CONTAINS(seed.at("expected").get<std::string>(), "integer >= 0");
  EXPECT_EQ(seed.at("got"), "\"a\"");
  EXPECT_EQ(by_path.at("sede").at("line"), 4);
  EXPECT_CONTAINS(by_path.at("sede").at("suggestion").get<std::string>(), "seed");
  EXPECT_EQ(by_path.at("optimizer.lr").at("argument"), 2);
  EXPECT_EQ(by_path.at("optimizer.lr").at("got"), "-1");
  EXPECT_EQ(by_path.at("optimizer.lr").at("expected"), "number > 0");
  EXPECT_CONTAINS(by_path.at("log.evry").at("suggestion").get<std::string>(), "log.every");
  EXPECT_TRUE(asked("tycho check nowhere.lua").at("error").at("problems").is_array());
  for (const char* command :
       {"tycho config nowhere.lua", "tycho plan nowhere.lua", "tycho ckpt ls nowhere", "tycho diff a b",
        "tycho eval nowhere", "tycho report nowhere", "tycho sweep table nowhere", "tycho test nowhere",
        "tycho data ls nowhere", "tycho tokenizer info nowhere", "tycho version"})
    asked(command);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which want more than any such limit
TEST_F(CliTest, TooLittleMemoryForThreadsIsNotReportedAsAnOutputError) {
  const std::string train =
      "tycho tokenizer train " TYCHO_SOURCE_DIR "/docs --ext .md --vocab-size 600 --out t.json";
  bool has_failed = false, has_worked = false;
  std::vector<int64_t> limits_kib = {4'000'000};
  for (int64_t kib = 14'000; kib <= 80'000; kib += 3'000) limits_kib.push_back(kib);
  for (const int64_t kib : limits_kib) {
    const Outcome outcome = here("ulimit -v " + std::to_string(kib) + "; " + train);
    EXPECT_EQ(outcome.output.find("cannot write"), std::string::npos) << outcome.output;
    has_worked |= outcome.code == 0;
    has_failed |= outcome.code == 14;
    if (outcome.code == 14) {
      EXPECT_CONTAINS(outcome.output, "out of memory");
    }
  }
  EXPECT_TRUE(has_failed && has_worked);
}
#endif

}  // namespace
}  // namespace tycho
