// Splits by names, compared with what `datasets` finds.
#include "trainer/data/splits/folder_splits.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

TEST(FolderSplits, AreThoseThatDatasetsFinds) {
  const Json cases = parse_json(read_file(testing::golden("splits/splits.json")), "splits.json");
  ASSERT_GE(cases.size(), 20u);
  for (const Json& one : cases) {
    if (one.contains("chosen")) continue;  // see data_files_test
    const std::vector<std::string> files = one.at("files");
    std::map<std::string, std::vector<std::string>> found, wanted;  // in the order of reading
    for (const FolderSplit& split : folder_splits(files)) found[split.name] = split.files;
    if (found.empty()) found["train"] = files;  // where no name says anything
    for (const auto& [name, of_split] : one.at("splits").items()) wanted[name] = of_split;
    EXPECT_EQ(found, wanted) << one.dump();
  }
}

TEST(FolderSplits, AShortNameStandsForItsSplit) {
  const std::vector<FolderSplit> splits = folder_splits({"train.jsonl", "dev.jsonl"});
  EXPECT_EQ(find_split(splits, "val")->files, std::vector<std::string>{"dev.jsonl"});
  EXPECT_EQ(find_split(splits, "train")->files, std::vector<std::string>{"train.jsonl"});
  EXPECT_EQ(find_split(splits, "test"), nullptr);
  EXPECT_EQ(find_split(splits, ""), nullptr);
}

}  // namespace
}  // namespace tycho
