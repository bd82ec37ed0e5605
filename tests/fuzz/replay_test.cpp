// Every file of the corpora, and damaged forms of it, through its target: what the fuzzer found stays fixed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets.h"
#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ReplayTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(ReplayTest, NothingInTheCorpusBreaksIt) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TYCHO_CORPUS) / GetParam().name)) {
    const std::string bytes = read(entry.path());
    GetParam().run(bytes);
    for (uint64_t i = 0; i < 8 && !bytes.empty(); ++i) {
      const auto words = philox(bytes.size(), i);
      std::string damaged = bytes;
      damaged[words[0] % damaged.size()] = static_cast<char>(words[1]);
      GetParam().run(damaged.substr(0, i % 2 == 0 ? damaged.size() : words[2] % damaged.size()));
    }
    ++count;
  }
  EXPECT_GE(count, 1) << "no corpus for " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(All, ReplayTest, testing::ValuesIn(fuzz_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
