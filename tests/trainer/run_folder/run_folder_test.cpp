// The folder of a run: what it holds, who may read it, what a second start adds.
#include "trainer/run_folder/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

RunRequest request() {
  RunRequest r;
  r.config_json = R"({"seed":17})";
  r.recipe_lua = "return r\n";
  r.provenance_json = "{}";
  r.recipe_hash = "abc";
  r.sources = {
      {"recipes/a.lua", "-- a"}, {"../lib/b.lua", "-- b"}, {"/etc/c.lua", "-- c"}, {"etc/c.lua", "-- d"}};
  r.argv = {"tycho", "run", "recipes/a.lua", "run_name=it's", "data=https://me:pass@host/x?sig=secret"};
  return r;
}

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
  EXPECT_EQ(read_file(dir / "runs/one/recipe.json"), R"({"seed":17})");
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

TEST(RunFolder, MasksSecrets) {
  const Variable token("HF_TOKEN", "canary-1"), key("AWS_SECRET_ACCESS_KEY", "canary-2"),
      pwd("MYSQL_PWD", "canary-3"), lower("my_password", "canary-4"), sas("AZURE_SAS", "canary-5"),
      plain("TYCHO_CPU", "avx2"),
      url("PROXY", "http://me:canary-6@proxy:80/ https://host/x?sig=canary-7 http://a/b@c"),
      bytes("ODD", "\xff"), chosen("ADDRESS", "canary-8");
  const Json environment = environment_without_secrets();
  EXPECT_EQ(environment["HF_TOKEN"], "***");
  EXPECT_EQ(environment["TYCHO_CPU"], "avx2");
  EXPECT_EQ(environment["PROXY"], "http://***@proxy:80/ https://host/x?*** http://a/b@c");
  const TempDir dir;
  RunRequest with_secret = request();
  with_secret.provenance_json = R"({"env.ADDRESS":[{"at":"ADDRESS","by":"environment","value":"***"}]})";
  write_run_folder(real_files(), dir / "run", with_secret, kVersions);
  const std::string text = read_file(dir / "run/env.json");
  EXPECT_EQ(text.find("canary"), std::string::npos) << text.substr(text.find("canary") - 30, 60);
  EXPECT_NE(text.find("\"TYCHO_CPU\": \"avx2\""), std::string::npos);
}

TEST(RunFolder, HoldsTheNewestStartAndKeepsEachThatDiffers) {
  const TempDir dir;
  RunRequest r = request();
  write_run_folder(real_files(), dir / "run", r, kVersions);
  write_run_folder(real_files(), dir / "run", r, kVersions);
  EXPECT_FALSE(fs::exists(dir / "run/attempt-2"));
  EXPECT_FALSE(fs::exists(dir / "run/attempt-1"));
  const std::vector<std::string> names = files_below(dir / "run");
  r.config_json = R"({"seed":18})", r.recipe_lua = "return longer\n", r.sources["recipes/a.lua"] = "-- a2";
  write_run_folder(real_files(), dir / "run", r, kVersions);
  write_run_folder(real_files(), dir / "run", r, kVersions);
  EXPECT_EQ(files_below(dir / "run/attempt-1"), names);
  EXPECT_EQ(read_file(dir / "run/attempt-1/recipe.lua"), "return r\n");
  EXPECT_EQ(read_file(dir / "run/attempt-1/recipe.json"), R"({"seed":17})");
  EXPECT_EQ(read_file(dir / "run/attempt-1/sources/recipes/a.lua"), "-- a");
  for (const char* newest : {"run/", "run/attempt-2/"}) {
    EXPECT_EQ(read_file(dir / newest + "recipe.json"), R"({"seed":18})");
    EXPECT_EQ(read_file(dir / newest + "recipe.lua"), "return longer\n");
    EXPECT_EQ(read_file(dir / newest + "sources/recipes/a.lua"), "-- a2");
  }
  EXPECT_FALSE(fs::exists(dir / "run/attempt-3"));
  write_run_folder(real_files(), dir / "run", request(), kVersions);
  EXPECT_EQ(read_file(dir / "run/attempt-3/recipe.json"), R"({"seed":17})");
  EXPECT_EQ(read_file(dir / "run/recipe.json"), R"({"seed":17})");
  EXPECT_EQ(read_file(dir / "run/attempt-1/recipe.json"), R"({"seed":17})");
}

TEST(RunFolder, HoldsTheNewestStartAfterAnyFailureOnTheWayThere) {
  RunRequest longer = request();
  longer.config_json = R"({"seed":18})", longer.recipe_lua = "return longer\n";
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
    EXPECT_EQ(read_file(newest_record(dir / "run") + "/recipe.json"), R"({"seed":18})") << fail_at;
    EXPECT_EQ(read_file(dir / "run/attempt-1/recipe.json"), R"({"seed":17})") << fail_at;
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
