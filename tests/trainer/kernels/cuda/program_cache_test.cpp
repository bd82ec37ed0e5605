// Compiled programs on disk: made once, made again where they are damaged, and done without where no file can
// be written.
#include "trainer/kernels/cuda/program_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/file_ops.h"

namespace tycho::cuda {
namespace {

class ProgramCacheTest : public testing::Test {
 protected:
  std::string get(const std::string& key, const std::string& folder) {
    return cached_program(folder, key, [&] {
      ++num_made_;
      return "code of " + key + std::string("\0\n", 2);
    });
  }
  std::string get(const std::string& key) { return get(key, folder_); }
  std::string only_file() const { return std::filesystem::directory_iterator(folder_)->path(); }

  const TempDir temp_;
  const std::string folder_ = temp_.path() + "/programs";
  int num_made_ = 0;
};

TEST_F(ProgramCacheTest, MakesEachProgramOnce) {
  EXPECT_EQ(get("a"), get("a"));
  EXPECT_EQ(num_made_, 1);
  EXPECT_NE(get("b"), get("a"));
  EXPECT_EQ(num_made_, 2);
}

TEST_F(ProgramCacheTest, MakesADamagedProgramAgain) {
  const std::string code = get("a"), whole = read_file(only_file());
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() - 1), whole.substr(0, 9),
        whole.substr(0, whole.size() - 3) + "x" + whole.substr(whole.size() - 2), whole + "x"}) {
    std::ofstream(only_file()) << damaged;
    num_made_ = 0;
    EXPECT_EQ(get("a"), code);
    EXPECT_EQ(num_made_, 1);
    EXPECT_EQ(read_file(only_file()), whole);
  }
}

TEST_F(ProgramCacheTest, DoesWithoutAFolderThatCannotBeWritten) {
  for (const char* folder : {"", "/proc/1/nowhere", "/dev/null/programs"}) {
    num_made_ = 0;
    EXPECT_EQ(get("a", folder), get("a", folder));
    EXPECT_EQ(num_made_, 2) << folder;
  }
}

}  // namespace
}  // namespace tycho::cuda
