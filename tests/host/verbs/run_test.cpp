// tycho run without training: what --print-only shows, and what a run folder keeps of git.
#include "tests/host/shell.h"

namespace tycho {
namespace {

class RunVerbTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(whole());
  }
  Outcome run(const std::string& words) const {
    return here(
        "unset -f tycho; unset GIT_DIR; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 TYCHO_FAKE_RUN_FOLDER=1; " +
        words);
  }
};

TEST_F(RunVerbTest, PrintOnlyShowsTheRecipeAndWhatEachArgumentGave) {
  const Outcome printed = run("bin/tycho run x.lua 'optimizer.lr*=2' seed=3 --print-only > y.lua; cat y.lua");
  EXPECT_EQ(printed.output.find("-- tycho run x.lua 'optimizer.lr*=2' seed=3 --print-only\n"
                                "-- argument 2  optimizer.lr*=2  gives  optimizer.lr = 0.002\n"
                                "-- argument 3  seed=3  gives  seed = 3\n"
                                "-- run folder runs/x, hash "),
            0)
      << printed.output;
  EXPECT_CONTAINS(printed.output, "r.seed = 3\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  EXPECT_EQ(run("bin/tycho diff x.lua y.lua 'optimizer.lr=1' seed=1").code, 0) << "it is a recipe";
  const Outcome wrong = run("bin/tycho run x.lua seed=x --print-only");
  EXPECT_EQ(wrong.code, 10);
}

TEST_F(RunVerbTest, KeepsWhatGitSaysOfItsFolder) {
  const std::string provenance =
      "; cat $(ls -d runs/x/attempt-* runs/x 2>/dev/null | head -1)/provenance.json";
  ASSERT_EQ(run("git init -q . && git add x.lua && git -c user.name=n -c user.email=e commit -qm one").code,
            0);
  const Outcome clean = run("bin/tycho run x.lua > out" + provenance);
  const std::string head = run("git rev-parse HEAD").output.substr(0, 40);
  EXPECT_CONTAINS(clean.output, "\"git.head\": [\n  {\n");
  EXPECT_CONTAINS(clean.output, "\"value\": \"" + head + "\"");
  EXPECT_CONTAINS(clean.output, "\"value\": false");
  EXPECT_EQ(clean.output.find("git.patch"), std::string::npos);
  // A repository's configuration names no program of ours to run.
  const Outcome dirty = run(
      "rm -rf runs; echo '-- more' >> x.lua; git config core.fsmonitor 'touch ran'; git config diff.external "
      "'touch ran'; bin/tycho run x.lua > out" +
      provenance);
  EXPECT_CONTAINS(dirty.output, "\"value\": true");
  EXPECT_CONTAINS(dirty.output, "+-- more\\n\"");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
}

TEST_F(RunVerbTest, WarnsOfARecipeThatPutsItsRunOutsideOfTheWorkingDirectory) {
  const auto start = [&](const std::string& run_dir, const std::string& arguments = "") {
    write(whole("r.run_dir = '" + run_dir + "'\n"));
    const Outcome started = run("mkdir -p sub && cd sub && ../bin/tycho run ../x.lua " + arguments);
    EXPECT_EQ(started.code, 0) << started.output;
    return started.output;
  };
  const std::string warning = "outside of the working directory";
  for (const std::string& inside :
       {std::string("a/{run_name}"), std::string("a/../b"), (folder_ / "sub/c").string()})
    EXPECT_EQ(start(inside).find(warning), std::string::npos) << inside;
  for (const std::string& outside : {std::string("../theirs/{run_name}"), (folder_ / "other/x").string()}) {
    EXPECT_CONTAINS(start(outside), "warning: ../x.lua:7 puts this run " + warning + ", into ");
    EXPECT_EQ(start(outside).find(warning), std::string::npos) << "it is a run's by now";
  }
  EXPECT_EQ(start("a", "run_dir=../asked_for").find(warning), std::string::npos);
}

TEST_F(RunVerbTest, SecretsAreInNoOutputAndNoFile) {
  write(whole(
      "local hidden, key = t.secret 'HIDDEN', t.env 'MY_API_KEY'\nprint('read', hidden, key)\n"
      "if r.seed == 3 then error('broken ' .. hidden) end\nif r.seed == 4 then r.run_dir = hidden end\n"));
  for (const char* words :
       {"run x.lua", "run x.lua seed=3", "run x.lua seed=4", "run x.lua --print-only", "check x.lua --json",
        "config x.lua", "repl x.lua -e 't.secret \"HIDDEN\"'", "repl x.lua -e 'print(t.secret \"HIDDEN\")'",
        "repl x.lua -e 'error(t.secret \"HIDDEN\")'", "repl x.lua --json < entries"}) {
    write(
        "{\"id\": 1, \"entry\": \"t.secret 'HIDDEN'\"}\n{\"id\": 2, \"entry\": \"error(t.secret "
        "'HIDDEN')\"}\n",
        "entries");
    const Outcome outcome = run(std::string("export HIDDEN=canary-61 MY_API_KEY=canary-62 GH_PAT=canary-63 "
                                            "OTHER=canary-64; bin/tycho ") +
                                words);
    EXPECT_EQ(outcome.output.find("canary"), std::string::npos) << words << "\n" << outcome.output;
    EXPECT_CONTAINS(outcome.output, "***");
  }
  const Outcome kept = run("ls runs/x; grep -r canary- runs/x; true");
  EXPECT_CONTAINS(kept.output, "env.json");
  EXPECT_EQ(kept.output.find("canary"), std::string::npos) << kept.output;
}

TEST_F(RunVerbTest, NeedsNoGit) {
  const Outcome none = run("bin/tycho run x.lua > out && cat runs/x/provenance.json");
  EXPECT_EQ(none.code, 0) << none.output;
  EXPECT_EQ(none.output.find("git."), std::string::npos);
  const Outcome broken =
      run("rm -rf runs; mkdir .git; bin/tycho run x.lua > out && cat runs/x/provenance.json");
  EXPECT_EQ(broken.code, 0) << broken.output;
  EXPECT_EQ(broken.output.find("git."), std::string::npos);
}

}  // namespace
}  // namespace tycho
