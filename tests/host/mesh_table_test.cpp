// The table of docs/parallel/meshes.md against what `tycho plan` says now. To write it anew:
//   TYCHO_UPDATE_GOLDENS=1 build/cpu/bin/mesh_table_test
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/host/shell.h"
#include "trainer/base/bytes.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

constexpr const char* kPage = TYCHO_SOURCE_DIR "/docs/parallel/meshes.md";
constexpr const char* kBegin = "<!-- written by mesh_table_test -->\n";
constexpr const char* kEnd = "<!-- end -->\n";
constexpr const char* kRecipes[] = {"mpt-7b", "mpt-13b", "mpt-30b", "mpt-70b", "llama-8b", "llama-70b"};
constexpr int kTopologyCode = 11;

class MeshTable : public ShellTest {
 protected:
  static std::string row(const std::string& recipe, int nodes) {
    const Outcome planned =
        shell("tycho plan --json machine=h100 parallel=auto --ranks " + std::to_string(8 * nodes) +
              " " TYCHO_SOURCE_DIR "/recipes/" + recipe + ".lua");
    if (planned.code == kTopologyCode && planned.output.find("none does") != std::string::npos)
      return fmt::format("| {} | does not fit | | | | |\n", nodes);
    EXPECT_EQ(planned.code, 0) << planned.output;
    if (planned.code != 0) return "";
    const Json plan = Json::parse(planned.output);
    const Json& time = plan.at("estimate");
    return fmt::format(
        "| {} | {} | {} x {} | {} | {} | {:.1f} % |\n", nodes, plan.at("mesh").get<std::string>(),
        plan.at("micro_batches_per_step").get<int64_t>(), plan.at("micro_batch").get<int64_t>(),
        human_bytes(plan.at("training_bytes").get<double>()),
        human_count(time.at("tokens_per_s").get<double>()), 100 * time.at("mfu").get<double>());
  }

  static std::string tables() {
    std::string text;
    for (const std::string recipe : kRecipes) {
      text += "\n### " + recipe +
              "\n\n| nodes | mesh | micro-batches x sequences | memory of a GPU | tokens/s | MFU |\n"
              "|---|---|---|---|---|---|\n";
      for (const int nodes : {1, 2, 4, 8, 16, 32}) text += row(recipe, nodes);
    }
    return text + "\n";
  }
};

TEST_F(MeshTable, IsWhatThePlannerSays) {
  const std::string page = read_file(kPage);
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << kPage;
  const size_t first = begin + std::string(kBegin).size();
  const std::string wanted = tables();
  if (std::getenv("TYCHO_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(kPage) << page.substr(0, first) + wanted + page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), wanted)
      << "docs/parallel/meshes.md is stale: TYCHO_UPDATE_GOLDENS=1 build/cpu/bin/mesh_table_test";
}

}  // namespace
}  // namespace tycho
