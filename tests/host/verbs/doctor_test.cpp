// tycho doctor: what it looks at, and a project's own checks.
#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using DoctorTest = ShellTest;

std::map<std::string, Json> findings(const Outcome& outcome) {
  std::map<std::string, Json> found;
  for (const Json& one : Json::parse(outcome.output)) found[one.at("subject")] = one;
  return found;
}

TEST_F(DoctorTest, LooksAtTheMachineAndLeavesNothingBehind) {
  const Outcome seen = here("tycho doctor --json 2>/dev/null");
  const auto found = findings(seen);
  for (const char* subject : {"cpu", "memory", "gpu", "engine", "lua", "disk space", "disk speed",
                              "file links", "open files", "slurm"})
    EXPECT_TRUE(found.contains(subject)) << subject;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const Outcome lines = here("tycho doctor");
  EXPECT_CONTAINS(lines.output, "ok    slurm         not inside a job");
}

TEST_F(DoctorTest, ChecksOfAProjectSayHowThingsStand) {
  std::filesystem::create_directories(folder_ / "doctor");
  write("return function(d) return \"ok\", d.exists(\"/proc\") and \"there\" or \"gone\" end\n",
        "doctor/a.lua");
  write("return function(d) return \"fail\", \"no scratch\", \"ask for one\" end\n", "doctor/b.lua");
  write("return function(d) return os.execute(\"true\") end\n", "doctor/c.lua");
  write("return 3\n", "doctor/d.lua");
  write("return function( end\n", "doctor/e.lua");
  write("return function() return \"fine\", \"x\" end\n", "doctor/f.lua");
  const Outcome seen = here("tycho doctor --json 2>/dev/null");
  EXPECT_EQ(seen.code, 1);
  auto found = findings(seen);
  EXPECT_EQ(found["a"].at("text"), "there");
  EXPECT_EQ(found["b"].at("advice"), "ask for one");
  for (const char* broken : {"c", "d", "e", "f"}) EXPECT_EQ(found[broken].at("level"), "fail") << broken;
  EXPECT_CONTAINS(found["c"].at("text").get<std::string>(), "os is not available");
  EXPECT_CONTAINS(found["f"].at("text").get<std::string>(), "it must return \"ok\"");
}

TEST_F(DoctorTest, AFolderThatCannotBeWrittenIsAFailure) {
  const Outcome seen = here("tycho doctor /proc/1");
  EXPECT_EQ(seen.code, 1);
  EXPECT_CONTAINS(seen.output, "choose another folder");
}

}  // namespace
}  // namespace tycho
