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

TEST(PlanChunksTest, ChunksPutTogetherAreTheDocuments) {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "word" + std::to_string(i) + (i % 9 == 0 ? ",\n\n" : " ");
  const std::string solid(100000, '-');
  const std::vector<std::string> paths = {dir / "a", dir / "empty", dir / "solid"};
  write_text(paths[0], text);
  write_text(paths[1], "");
  write_text(paths[2], solid);
  std::vector<std::string> joined(3);
  const auto chunks = plan_chunks(paths, true, 10000);
  for (size_t i = 0; i < chunks.size(); ++i) {
    joined[static_cast<size_t>(chunks[i].document)] += read_chunk(paths, chunks[i]);
    EXPECT_EQ(chunks[i].first, i == 0 || chunks[i - 1].document != chunks[i].document);
    EXPECT_EQ(chunks[i].last, i + 1 == chunks.size() || chunks[i + 1].document != chunks[i].document);
  }
  EXPECT_EQ(joined, (std::vector<std::string>{text, "", solid}));
  EXPECT_GT(chunks.size(), 10u);
  EXPECT_EQ(plan_chunks(paths, false, 10000).size(), 3u);
}

}  // namespace
}  // namespace tycho
