// Includes run one way: the edges declared in CMake are held against every #include of the product.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/house/folder_circles.h"
#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

const std::vector<Library> kHouse = {
    {"base", {}, {"trainer/base/error.h"}},
    {"config", {"base"}, {"trainer/recipe/train_config.h"}},
    {"data", {"config"}, {"trainer/data/loader/loader.h", "trainer/data/loader/loader.cpp"}},
    {"kernels", {"base", "torch"}, {"trainer/kernels/bias.h", "trainer/kernels/bias.cpp"}},
    {"define", {"config"}, {"bindings/define/schema.h"}}};

std::vector<std::string> check(const std::string& file, const std::string& text) {
  return layering_violations(kHouse, {{file, text}});
}

TEST(Layering, HoldsInThisTree) {
  const std::vector<Library> libraries = parse_layers(read_text(TYCHO_LAYERS));
  ASSERT_GT(libraries.size(), 5u) << "could not read " << TYCHO_LAYERS;
  const Sources sources = read_sources({"trainer", "bindings", "host"}, {".h", ".cpp", ".cu", ".cuh"});
  ASSERT_GT(sources.size(), 50u);
  for (const std::string& violation : layering_violations(libraries, sources)) ADD_FAILURE() << violation;
}

TEST(Layering, NoTwoFoldersIncludeEachOther) {
  const Sources sources = read_sources({"trainer", "bindings", "host"}, {".h", ".cpp", ".cu", ".cuh"});
  for (const std::string& pair : mutual_folders(sources)) ADD_FAILURE() << pair;
}

/// Circles of folders that are still there. This list may only shrink.
const std::vector<std::set<std::string>> kCirclesLeft = {
    {"trainer/loggers", "trainer/metrics"},
    {"trainer/callbacks", "trainer/recipe", "trainer/huggingface", "trainer/device", "trainer/eval",
     "trainer/tasks", "trainer/kernels", "trainer/layout", "trainer/train", "trainer/models", "trainer/optim",
     "trainer/comm", "trainer/saving", "trainer/session", "trainer/sharding"},
};

TEST(Layering, FoldersFormNoCirclesButThoseThatAreLeft) {
  const Sources sources = read_sources({"trainer", "bindings", "host"}, {".h", ".cpp", ".cu", ".cuh"});
  std::set<std::set<std::string>> found;
  for (const FolderCircle& circle : folder_circles(sources)) {
    found.insert(circle.folders);
    if (std::count(kCirclesLeft.begin(), kCirclesLeft.end(), circle.folders) > 0) continue;
    std::string text;
    for (const std::string& line : circle.lines) text += "\n  " + line;
    ADD_FAILURE() << "expected no circle of folders beside those of kCirclesLeft, got one of "
                  << circle.folders.size() << ":" << text;
  }
  for (const std::set<std::string>& circle : kCirclesLeft)
    EXPECT_TRUE(found.contains(circle))
        << "the circle with " << *circle.begin() << " is smaller or gone: shrink kCirclesLeft";
}

TEST(Layering, SeesCirclesOverOtherFoldersAndForwardDeclarations) {
  const auto circles = folder_circles({{"trainer/a/x.h", "#include \"trainer/b/y.h\"\nclass A {\n"},
                                       {"trainer/b/y.h", "#include \"trainer/c/cpu/z.h\"\n"},
                                       {"trainer/c/c.h", "\n"},
                                       {"trainer/c/cpu/z.h", "// z\nclass A;\n"},
                                       {"trainer/d/w.h", "#include \"trainer/a/x.h\"\n"}});
  ASSERT_EQ(circles.size(), 1u);
  EXPECT_EQ(circles[0].folders, (std::set<std::string>{"trainer/a", "trainer/b", "trainer/c"}));
  EXPECT_EQ(circles[0].lines.back(), "trainer/c/cpu/z.h:2, declares A (trainer/c -> trainer/a)");
}

TEST(Layering, FoldersOfAFolderWithoutFilesAreSeenOneByOne) {
  const Sources two = {{"trainer/data/rows/x.h", "#include \"trainer/data/order/y.h\"\n"},
                       {"trainer/data/order/y.h", "#include \"trainer/data/rows/x.h\"\n"}};
  const auto circles = folder_circles(two);
  ASSERT_EQ(circles.size(), 1u);
  EXPECT_EQ(circles[0].folders, (std::set<std::string>{"trainer/data/order", "trainer/data/rows"}));
}

TEST(Layering, NamesTwoFoldersThatIncludeEachOther) {
  const auto found = mutual_folders({{"trainer/a/x.h", "\n#include \"trainer/b/y.h\"\n"},
                                     {"trainer/b/z.cpp", "#include \"trainer/a/x.h\"\n"},
                                     {"trainer/a/b/w.cpp", "#include \"trainer/a/x.h\"\n"}});
  EXPECT_EQ(found, (std::vector<std::string>{
                       "trainer/a and trainer/b include each other: trainer/a/x.h:2, trainer/b/z.cpp:1"}));
}

TEST(Layering, AllowsWhatIsReachedOverOtherLibraries) {
  EXPECT_TRUE(check("trainer/data/loader/loader.cpp", "#include \"trainer/base/error.h\"\n").empty());
}

TEST(Layering, NamesTheLineOfAnEdgeThatPointsUp) {
  const auto found = check("trainer/base/error.h",
                           "// x\n#include <string>\n#  include \"trainer/recipe/train_config.h\"\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0],
            "trainer/base/error.h:3: includes trainer/recipe/train_config.h: base has no edge to config");
}

TEST(Layering, KeepsSiblingsApart) {
  EXPECT_EQ(check("trainer/data/loader/loader.cpp", "#include \"trainer/kernels/bias.h\"\n").size(), 1u);
}

TEST(Layering, KeepsTorchOutOfTorchFreeLibraries) {
  EXPECT_EQ(check("trainer/data/loader/loader.cpp", "#include <ATen/ATen.h>\n").size(), 1u);
  EXPECT_TRUE(check("trainer/kernels/bias.cpp", "#include <ATen/ATen.h>\n").empty());
  EXPECT_EQ(check("host/main.cpp", "#include <c10/core/Device.h>\n").size(), 1u);
}

TEST(Layering, SeesATorchFreeLibraryOnTopOfLibTorch) {
  const auto found = layering_violations({{"kernels", {"torch"}, {}}, {"plan", {"kernels"}, {}}}, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "plan: a torch-free library depends on one that uses LibTorch");
}

TEST(Layering, KeepsLuaCudaAndNcclInTheirRooms) {
  EXPECT_EQ(check("trainer/data/loader/loader.cpp", "#include <lua.hpp>\n").size(), 1u);
  EXPECT_TRUE(check("bindings/define/schema.cpp", "#include <lua.hpp>\n").empty());
  EXPECT_EQ(check("trainer/kernels/bias.cpp", "#include <cuda_runtime.h>\n").size(), 1u);
  EXPECT_TRUE(check("trainer/kernels/cuda/rope.cu", "#include <cuda_runtime.h>\n").empty());
  EXPECT_EQ(check("trainer/kernels/cuda/rope.cu", "#include <nccl.h>\n").size(), 1u);
}

TEST(Layering, KeepsTheTrainerIgnorantOfItsHost) {
  EXPECT_EQ(check("trainer/recipe/train_config.h", "#include \"bindings/define/schema.h\"\n").size(), 2u);
  EXPECT_EQ(check("bindings/define/schema.h", "#include \"host/cli.h\"\n").size(), 1u);
}

TEST(Layering, GivesAnUnlistedFileToTheOneLibraryAround) {
  EXPECT_EQ(owner_of(kHouse, "trainer/kernels/cpu/rope.cpp"), "kernels");
  EXPECT_EQ(owner_of(kHouse, "host/main.cpp"), "");
}

TEST(Layering, ReadsTheFileThatCmakeWrites) {
  const auto libraries = parse_layers("data trainer : config;base : data/a.cpp;data/b.cpp data/a.h\n");
  ASSERT_EQ(libraries.size(), 1u);
  EXPECT_EQ(libraries[0].edges, (std::vector<std::string>{"config", "base"}));
  EXPECT_EQ(libraries[0].files,
            (std::vector<std::string>{"trainer/data/a.cpp", "trainer/data/b.cpp", "trainer/data/a.h"}));
}

}  // namespace
}  // namespace tycho::house
