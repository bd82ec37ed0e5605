// Includes run one way: the edges declared in CMake are held against every #include of the product.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

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

TEST(Layering, FoldersFormNoCircles) {
  for (const FolderCircle& circle :
       folder_circles(read_sources({"trainer", "bindings", "host"}, {".h", ".cpp", ".cu", ".cuh"}))) {
    std::string text;
    for (const std::string& line : circle.lines) text += "\n  " + line;
    ADD_FAILURE() << "expected no circle of folders, got one of " << circle.folders.size() << ":" << text;
  }
}

// Numbers of today, with a header and its source as one file. They may only fall.
constexpr size_t kMostFileCircles = 22, kLargestFileCircle = 9;

TEST(Layering, FilesFormFewAndSmallCircles) {
  const std::vector<FolderCircle> circles =
      file_circles(read_sources({"trainer", "bindings", "host"}, {".h", ".cpp", ".cu", ".cuh"}));
  EXPECT_LE(circles.size(), kMostFileCircles);
  for (const FolderCircle& circle : circles) {
    std::string text;
    for (const std::string& line : circle.lines) text += "\n  " + line;
    if (circles.size() > kMostFileCircles || circle.folders.size() > kLargestFileCircle)
      ADD_FAILURE()
          << "a circle of " << circle.folders.size() << " files:" << text
          << "\nMove the function that chooses among the others into a file of its own, above them.";
  }
}

TEST(Layering, SeesACircleOfFiles) {
  const Sources sources = {{"trainer/a/face.h", ""},
                           {"trainer/a/face.cpp", "#include \"trainer/a/kind.h\"\n"},
                           {"trainer/a/kind.h", "#include \"trainer/a/face.h\"\n"},
                           {"trainer/a/other.h", "#include \"trainer/a/face.h\"\n"}};
  const std::vector<FolderCircle> circles = file_circles(sources);
  ASSERT_EQ(circles.size(), 1u);
  EXPECT_EQ(circles[0].folders, (std::set<std::string>{"trainer/a/face", "trainer/a/kind"}));
  EXPECT_EQ(circles[0].lines.size(), 2u);
}

/// Returns the folder of a library: the one that all its sources are in. kernels_cuda compiles two.
std::string folder_of(const Library& library) {
  if (library.name == "kernels_cuda") return "trainer/kernels/cuda";
  std::string folder = library.files.at(0).substr(0, library.files[0].rfind('/'));
  for (const std::string& file : library.files)
    while (file.compare(0, folder.size() + 1, folder + "/") != 0)
      folder = folder.substr(0, folder.rfind('/'));
  return folder;
}

TEST(Layering, AFolderIsALibrary) {
  std::map<std::string, std::set<std::string>> owners, folders;
  for (const Library& library : parse_layers(read_text(TYCHO_LAYERS))) {
    for (const std::string& file : library.files)
      owners[file.substr(0, file.rfind('/'))].insert(library.name);
    folders[folder_of(library)].insert(library.name);
  }
  for (const auto& names : {owners, folders})
    for (const auto& [folder, libraries] : names)
      EXPECT_EQ(libraries.size(), 1u)
          << folder << " holds sources of " << *libraries.begin() << " and " << *libraries.rbegin();
}

/// The rows of docs/architecture.md: "folder ○ | uses".
TEST(Layering, ThePageListsTheEdges) {
  const std::vector<Library> libraries = parse_layers(read_text(TYCHO_LAYERS));
  std::map<std::string, std::string> folders;
  for (const Library& library : libraries) folders[library.name] = folder_of(library);
  std::vector<std::string> expected, found;
  for (const Library& library : libraries) {
    if (!folder_of(library).starts_with("trainer/")) continue;
    std::string row = folder_of(library).substr(8), uses;
    bool torch = false;
    for (const std::string& edge : library.edges) {
      torch |= edge == "torch";
      if (edge != "torch") uses += (uses.empty() ? "" : ", ") + folders[edge].substr(8);
    }
    expected.push_back(row + (torch ? "" : " ○") + " | " + uses);
  }
  std::istringstream page(read_text(std::string(TYCHO_SOURCE_DIR) + "/docs/architecture.md"));
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| folder of trainer/")) in_table = true;
    if (in_table && !line.starts_with("|")) break;
    if (!in_table || line.starts_with("| folder") || line.starts_with("|---")) continue;
    const size_t first = line.find(" | ", 2), second = line.find(" | ", first + 3);
    found.push_back(line.substr(2, second - 2));
  }
  EXPECT_EQ(found, expected) << "docs/architecture.md and trainer/CMakeLists.txt differ";
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
