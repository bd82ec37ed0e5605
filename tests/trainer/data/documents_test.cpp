// Finding the documents to convert.
#include "trainer/data/documents.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::TempDir;
using testing::write_text;

TEST(ListDocumentsTest, SearchesFoldersInSortedOrder) {
  TempDir dir;
  for (const char* name : {"b/z.txt", "b/a.txt", "b/deep/er.txt", "b/skip.md", "a.md"})
    write_text(dir / name, "x");
  EXPECT_EQ(
      list_documents({dir / "b", dir / "a.md"}, {".txt"}),
      (std::vector<std::string>{dir / "b/a.txt", dir / "b/deep/er.txt", dir / "b/z.txt", dir / "a.md"}));
  EXPECT_EQ(list_documents({dir.path()}, {".txt", ".md"}).size(), 5u);
  expect_error(ExitCode::kUnusable, {"no file that ends in .cpp or .h"}, [&] {
    list_documents({dir.path()}, {".cpp", ".h"});
  });
  expect_error(ExitCode::kUnusable, {"no file or folder", "none"},
               [&] { list_documents({dir / "none"}, {".txt"}); });
}

}  // namespace
}  // namespace tycho
