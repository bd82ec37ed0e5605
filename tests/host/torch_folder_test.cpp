// LibTorch is found where pip puts it, and another release is refused by name.
#include "host/torch_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tycho {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

class TorchFolderTest : public testing::Test {
 protected:
  TorchFolderTest() : root_(fs::temp_directory_path() / ("torch_folder_test." + std::to_string(getpid()))) {
    fs::create_directories(root_);
  }
  ~TorchFolderTest() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path torch(const fs::path& path, const std::string& version = "2.11.0+cu130",
                 const std::string& cuda = "'13.0'") {
    write(path / "lib/libtorch_cpu.so", "");
    write(path / "version.py", "from typing import Optional\n__version__ = '" + version +
                                   "'\ndebug = False\ncuda: Optional[str] = " + cuda +
                                   "\nhip: Optional[str] = None\n");
    return root_ / path;
  }
  Paths found(const fs::path& prefix) {
    return installed_torches(root_ / prefix, root_ / "home/ann/.local", root_);
  }

  const fs::path root_;
  const TorchNeed need_ = {"2.11", "13"};
};

TEST_F(TorchFolderTest, IsFoundInEveryLayout) {
  const fs::path venv = torch("venv/lib/python3.12/site-packages/torch");
  const fs::path user = torch("home/ann/.local/lib/python3.9/site-packages/torch");
  const fs::path debian = torch("usr/local/lib/python3.11/dist-packages/torch");
  const fs::path red_hat = torch("usr/local/lib64/python3.9/site-packages/torch");
  const fs::path apt = torch("usr/lib/python3/dist-packages/torch");
  const fs::path target = torch("flat/torch");
  EXPECT_EQ(found("venv"), (Paths{venv, user, debian, red_hat, apt}));
  EXPECT_EQ(found("home/ann/.local"), (Paths{user, debian, red_hat, apt}));
  EXPECT_EQ(found("usr/local"), (Paths{debian, red_hat, user, apt}));
  EXPECT_EQ(found("flat").front(), target);
}

TEST_F(TorchFolderTest, NewerPythonsComeFirst) {
  const fs::path old = torch("p/lib/python3.9/site-packages/torch");
  const fs::path newer = torch("p/lib/python3.13/site-packages/torch");
  EXPECT_EQ(found("p"), (Paths{newer, old}));
}

TEST_F(TorchFolderTest, AnEnvironmentThatUsesTheSystemHasItsBase) {
  const fs::path base = torch("opt/python/lib/python3.11/site-packages/torch");
  write("venv/pyvenv.cfg", "home = /opt/python/bin\ninclude-system-site-packages = false\n");
  EXPECT_EQ(found("venv"), Paths());
  write("venv/pyvenv.cfg", "home = /opt/python/bin\ninclude-system-site-packages = true\nversion = 3.11.2\n");
  EXPECT_EQ(found("venv"), Paths{base});
}

TEST_F(TorchFolderTest, TheReleaseItWasBuiltForIsTaken) {
  EXPECT_EQ(torch_problem(torch("a"), need_), "");
  EXPECT_EQ(torch_problem(torch("b", "2.11.1+cpu", "None"), need_), "");
  EXPECT_EQ(torch_problem(torch("c", "2.11.0a0+git70d99e9"), need_), "");
  EXPECT_EQ(torch_problem(torch("d", "2.11.0+cu126", "'12.6'"), {"2.11", ""}), "") << "a build without CUDA";
  write("e/lib/libtorch_cpu.so", "");
  EXPECT_EQ(torch_problem(root_ / "e", need_), "") << "nothing says which one it is";
}

TEST_F(TorchFolderTest, OthersAreRefusedByName) {
  const std::string older = torch_problem(torch("old", "2.9.1+cu130"), need_);
  EXPECT_EQ(older, "expected torch 2.11, got 2.9.1+cu130 in " + (root_ / "old").string() +
                       ": `pip install 'torch==2.11.*'` in the environment of this program installs it; if "
                       "LD_LIBRARY_PATH names another one, take it out");
  EXPECT_NE(torch_problem(torch("new", "2.110.0"), need_), "");
  EXPECT_NE(torch_problem(torch("first", "2.1.0"), {"2.11", ""}), "");
  const std::string cuda = torch_problem(torch("cuda12", "2.11.0+cu126", "'12.6'"), need_);
  EXPECT_NE(
      cuda.find("expected torch 2.11 with CUDA 13 or without CUDA, got 2.11.0+cu126 with CUDA 12.6 in "),
      std::string::npos)
      << cuda;
}

TEST_F(TorchFolderTest, ArchivesSayTheirReleaseInAnotherFile) {
  write("a/lib/libtorch_cpu.so", "");
  write("a/build-version", "2.10.0+cu128\n");
  const auto facts = read_torch_facts(root_ / "a");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->version, "2.10.0+cu128");
  EXPECT_EQ(facts->cuda, "12.8");
  write("a/build-version", "2.11.0+cpu\n");
  EXPECT_EQ(read_torch_facts(root_ / "a")->cuda, "");
  EXPECT_FALSE(read_torch_facts(root_ / "none"));
}

}  // namespace
}  // namespace tycho
