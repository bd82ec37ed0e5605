// The folder of a run: what it holds, who may read it, what a second start adds.
#include "trainer/run_folder/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/lock/run_lock.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

RunRequest request() {
  RunRequest r;
  r.config.seed = 17;
  r.recipe_lua = "return r\n";
  r.provenance_json = "{}";
  r.recipe_hash = "abc";
  r.sources = {
      {"recipes/a.lua", "-- a"}, {"../lib/b.lua", "-- b"}, {"/etc/c.lua", "-- c"}, {"etc/c.lua", "-- d"}};
  r.argv = {"tycho", "run", "recipes/a.lua", "run_name=it's", "data=https://me:pass@host/x?sig=secret"};
  return r;
}

int64_t seed_in(const std::string& path) { return parse_json(read_file(path), path).at("seed"); }

const Json kVersions = {{"tycho", "0.1.0"}};

/// Sets a variable of the environment for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

std::vector<std::string> files_below(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), dir).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(RunFolder, HoldsWhatWasAsked) {
  const TempDir dir;
  write_run_folder(real_files(), dir / "runs/one", request(), kVersions);
  EXPECT_EQ(files_below(dir / "runs/one"),
            (std::vector<std::string>{"argv.txt", "env.json", "provenance.json", "recipe.json", "recipe.lua",
                                      "sources/etc/c.lua", "sources/etc/c.lua~", "sources/recipes/a.lua",
                                      "sources/up/lib/b.lua", "versions.json"}));
  EXPECT_EQ(seed_in(dir / "runs/one/recipe.json"), 17);
  EXPECT_EQ(read_file(dir / "runs/one/recipe.lua"), "return r\n");
  EXPECT_EQ(read_file(dir / "runs/one/sources/up/lib/b.lua"), "-- b");
  EXPECT_EQ(read_file(dir / "runs/one/argv.txt"),
            "tycho run recipes/a.lua 'run_name=it'\\''s' 'data=https://***@host/x?***'\n");
  EXPECT_EQ(parse_json(read_file(dir / "runs/one/versions.json"), "test"), kVersions);
}

TEST(RunFolder, IsReadableAsTheUmaskSaysButForTheEnvironment) {
  const TempDir dir;
  const mode_t before = ::umask(022);
  write_run_folder(real_files(), dir / "run", request(), kVersions);
  ::umask(before);
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    struct stat info = {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    const bool is_secret = entry.path().filename() == "env.json";
    EXPECT_EQ(info.st_mode & 0777u, entry.is_directory() ? 0755u : is_secret ? 0600u : 0644u) << entry.path();
  }
}

// The first names are those that a run's env.json was once found to hold with their values.
TEST(RunFolder, KeepsValuesOfKnownVariablesOnly) {
  const char* names[] = {"AZURE_STORAGE_CONNECTION_STRING",
                         "GH_PAT",
                         "SLACK_WEBHOOK",
                         "JWT",
                         "DB_PW",
                         "HF_TOKEN",
                         "AWS_SECRET_ACCESS_KEY",
                         "NPM_CONFIG_X",
                         "SOMETHING_ELSE",
                         "http_proxy",
                         "LC_CANARY",
                         "SLURM_JWT",
                         "TYCHO_TOKEN"};
  std::vector<std::unique_ptr<Variable>> canaries;
  for (const char* name : names) canaries.push_back(std::make_unique<Variable>(name, "canary-1"));
  const Variable cpu("TYCHO_CPU", "avx2"), job("SLURM_JOB_ID", "99"),
      url("NCCL_NET_PLUGIN", "http://me:canary-6@proxy:80/?sig=canary-7"), odd("TYCHO_ODD", "\xff"),
      read("DATA_ROOT", "/data"), secret("ADDRESS", "canary-8");
  const TempDir dir;
  RunRequest with_reads = request();
  with_reads.provenance_json =
      R"({"env.ADDRESS":[{"at":"ADDRESS","by":"environment","value":"***"}],
          "env.NOT_SET":[{"at":"NOT_SET","by":"environment","value":null}],
          "env.DATA_ROOT":[{"at":"DATA_ROOT","by":"environment","value":"/data"}]})";
  write_run_folder(real_files(), dir / "run", with_reads, kVersions);
  const std::string text = read_file(dir / "run/env.json");
  EXPECT_EQ(text.find("canary"), std::string::npos) << text;
  const Json environment = parse_json(text, "test");
  EXPECT_EQ(environment.at("TYCHO_CPU"), "avx2");
  EXPECT_EQ(environment.at("SLURM_JOB_ID"), "99");
  EXPECT_EQ(environment.at("PATH"), std::getenv("PATH"));
  EXPECT_EQ(environment.at("NCCL_NET_PLUGIN"), "http://***@proxy:80/?***");
  EXPECT_EQ(environment.at("DATA_ROOT"), "/data");
  EXPECT_FALSE(environment.contains("NOT_SET"));
  for (const char* name : {"ADDRESS", "SLURM_JWT", "TYCHO_TOKEN"})
    EXPECT_EQ(environment.at(name), "***") << name;
  for (const char* name : {"GH_PAT", "SOMETHING_ELSE", "http_proxy", "LC_CANARY"})
    EXPECT_TRUE(environment.at(name).is_null()) << name;
}

TEST(RunFolder, SecretsThatTheRecipeReadAreMaskedFromThenOn) {
  const Variable read("RUN_FOLDER_READ", "canary-21"), other("RUN_FOLDER_OTHER", "canary-22");
  RunRequest with_secret = request();
  with_secret.provenance_json =
      R"({"env.RUN_FOLDER_READ":[{"value":"***"}],"env.RUN_FOLDER_GONE":[{"value":"***"}],
          "env.RUN_FOLDER_OTHER":[{"value":"canary-22"}],"lr":[{"value":"***"}]})";
  with_secret.argv = {"tycho", "run", "x.lua", "note=canary-21"};
  register_read_secrets(with_secret);
  EXPECT_EQ(without_secrets("canary-21 canary-22"), "*** canary-22");
  const TempDir dir;
  write_run_folder(real_files(), dir / "run", with_secret, kVersions);
  EXPECT_EQ(read_file(dir / "run/argv.txt"), "tycho run x.lua 'note=***'\n");
  with_secret.provenance_json = "not JSON";
  EXPECT_NO_THROW(register_read_secrets(with_secret));
}

std::string refusal(const std::string& dir) {
  try {
    require_own_folder(dir);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kFolderOwned);
    return error.what();
  }
  return "";
}

TEST(RunFolder, IsNewEmptyOrARunsAndNothingElse) {
  const TempDir dir;
  const auto write = [&](const std::string& name, const std::string& text = "mine") {
    write_file_atomically(real_files(), dir / name, text);
  };
  EXPECT_EQ(refusal(dir / "new"), "");
  EXPECT_EQ(refusal(dir.path()), "");
  for (const char* name :
       {"slurm-99.out", "slurm-99.err", "mine.log", "output.txt", "events.jsonl", ".hidden"})
    write(name);
  fs::create_directories(dir / "checkpoints/step-000000300.0123abcd");
  EXPECT_EQ(refusal(dir.path()), "");
  for (const char* name : {"recipe.lua", "env.json", "recipe.json", "checkpoints/epoch=1.ckpt"}) {
    write(name);
    const std::string top = fs::path(name).begin()->string();
    EXPECT_NE(refusal(dir.path()).find("it holds " + top + ", and"), std::string::npos)
        << refusal(dir.path());
    fs::remove(dir / name);
  }
  EXPECT_EQ(refusal(dir.path()), "");
  write_run_folder(real_files(), dir / "run", request(), kVersions);
  EXPECT_EQ(refusal(dir / "run"), "");
}

// A run that was killed before its record was whole has taken the folder. Databases have a LOCK, too.
TEST(RunFolder, ALockThatNamesAnOwnerMakesItARuns) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "recipe.lua", "half a record");
  write_file_atomically(real_files(), dir / "LOCK", "");
  EXPECT_NE(refusal(dir.path()), "");
  fs::remove(dir / "LOCK");
  { const RunLock lock(real_files(), dir.path()); }
  EXPECT_EQ(refusal(dir.path()), "");
}

TEST(RunFolder, HoldsTheNewestStartAndKeepsEachThatDiffers) {
  const TempDir dir;
  RunRequest r = request();
  write_run_folder(real_files(), dir / "run", r, kVersions);
  write_run_folder(real_files(), dir / "run", r, kVersions);
  EXPECT_FALSE(fs::exists(dir / "run/attempt-2"));
  EXPECT_FALSE(fs::exists(dir / "run/attempt-1"));
  const std::vector<std::string> names = files_below(dir / "run");
  r.config.seed = 18, r.recipe_lua = "return longer\n", r.sources["recipes/a.lua"] = "-- a2";
  write_run_folder(real_files(), dir / "run", r, kVersions);
  write_run_folder(real_files(), dir / "run", r, kVersions);
  EXPECT_EQ(files_below(dir / "run/attempt-1"), names);
  EXPECT_EQ(read_file(dir / "run/attempt-1/recipe.lua"), "return r\n");
  EXPECT_EQ(seed_in(dir / "run/attempt-1/recipe.json"), 17);
  EXPECT_EQ(read_file(dir / "run/attempt-1/sources/recipes/a.lua"), "-- a");
  for (const char* newest : {"run/", "run/attempt-2/"}) {
    EXPECT_EQ(seed_in(dir / newest + "recipe.json"), 18);
    EXPECT_EQ(read_file(dir / newest + "recipe.lua"), "return longer\n");
    EXPECT_EQ(read_file(dir / newest + "sources/recipes/a.lua"), "-- a2");
  }
  EXPECT_FALSE(fs::exists(dir / "run/attempt-3"));
  write_run_folder(real_files(), dir / "run", request(), kVersions);
  EXPECT_EQ(seed_in(dir / "run/attempt-3/recipe.json"), 17);
  EXPECT_EQ(seed_in(dir / "run/recipe.json"), 17);
  EXPECT_EQ(seed_in(dir / "run/attempt-1/recipe.json"), 17);
}

TEST(RunFolder, HoldsTheNewestStartAfterAnyFailureOnTheWayThere) {
  RunRequest longer = request();
  longer.config.seed = 18, longer.recipe_lua = "return longer\n";
  for (int fail_at = 1;; ++fail_at) {
    const TempDir dir;
    write_run_folder(real_files(), dir / "run", request(), kVersions);
    FaultyFiles files(fail_at);
    bool failed = false;
    try {
      write_run_folder(files, dir / "run", longer, kVersions);
    } catch (const Error&) {
      failed = true;
    }
    if (!failed) break;
    FaultyFiles healthy;
    write_run_folder(healthy, dir / "run", longer, kVersions);
    EXPECT_EQ(read_file(dir / "run/recipe.lua"), "return longer\n") << fail_at;
    EXPECT_EQ(seed_in(newest_record(dir / "run") + "/recipe.json"), 18) << fail_at;
    EXPECT_EQ(seed_in(dir / "run/attempt-1/recipe.json"), 17) << fail_at;
  }
}

TEST(RunFolder, IsCompleteAfterAnyFailureAndANewStart) {
  for (int fail_at = 1;; ++fail_at) {
    const TempDir dir;
    FaultyFiles files(fail_at);
    try {
      write_run_folder(files, dir / "run", request(), kVersions);
      EXPECT_GT(fail_at, 20);
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      EXPECT_NE(std::string(error.what()).find("cannot write " + (dir / "run")), std::string::npos)
          << error.what();
    }
    FaultyFiles healthy;
    write_run_folder(healthy, dir / "run", request(), kVersions);
    EXPECT_EQ(files_below(dir / "run").size(), 10u) << fail_at;
  }
}

TEST(RunFolder, SaysWhatToDoWhenItCannotBeWritten) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "file", "");
  try {
    write_run_folder(real_files(), dir / "file/run", request(), kVersions);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_EQ(std::string(error.what()), "[run folder] cannot write " + (dir / "file/run") +
                                             ": cannot create the folder " + (dir / "file") +
                                             ": File exists; choose another folder with run_dir=PATH");
  }
}

TEST(RunFolder, NamesAFolderThatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms::owner_read | fs::perms::owner_exec);
  try {
    write_run_folder(real_files(), dir / "run", request(), kVersions);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_NE(std::string(error.what()).find("Permission denied; choose a folder that you can write to"),
              std::string::npos);
  }
  fs::permissions(dir.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace tycho
