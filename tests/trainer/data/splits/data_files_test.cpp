// Configurations and splits, compared with what `datasets` chooses.
#include "trainer/data/splits/data_files.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::expect_error;
using Splits = std::map<std::string, std::vector<std::string>>;

/// Returns what is read of a data set, as `datasets` says it.
Splits splits_of(const DataFiles& chosen, bool is_declared) {
  Splits splits;
  for (const FolderSplit& split : chosen.splits)
    splits[split.name] = is_declared ? split.files : files_of_main_kind(split.files, "here");
  return splits;
}

TEST(DataFiles, AreThoseThatDatasetsChooses) {
  const Json cases = parse_json(read_file(testing::golden("splits/splits.json")), "splits.json");
  int count = 0;
  for (const Json& one : cases) {
    if (!one.contains("chosen")) continue;
    ++count;
    DataListing listing{.place = "here", .files = one.at("files")};
    if (one.at("readme").is_string()) listing.readme = one.at("readme");
    const std::string asked = one.at("asked").is_string() ? one.at("asked") : "";
    const Json& wanted = one.at("chosen");
    try {
      const DataFiles found = choose_data_files(listing, asked);
      const bool is_declared = listing.readme.find("config_name") != std::string::npos;
      const Splits splits = splits_of(found, is_declared);
      if (wanted.contains("error")) {
        ADD_FAILURE() << "expected an error: " << one.dump();
        continue;
      }
      EXPECT_EQ(found.configuration, wanted.at("configuration")) << one.dump();
      EXPECT_EQ(splits, wanted.at("splits").get<Splits>()) << one.dump();
    } catch (const Error& error) {
      EXPECT_TRUE(wanted.contains("error")) << error.what() << "\n" << one.dump();
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
    }
  }
  EXPECT_GE(count, 30);
}

TEST(DataFiles, AWrongConfigurationIsAnsweredWithThoseThatExist) {
  const DataListing listing{.place = "hf://datasets/a/b",
                            .files = {"de.jsonl", "en.jsonl"},
                            .readme =
                                "---\nconfigs:\n- config_name: en\n  data_files: en.jsonl\n"
                                "- config_name: de\n  data_files: de.jsonl\n---\n"};
  expect_error(ExitCode::kUnusable, {"hf://datasets/a/b", "no configuration fr", "en, de"},
               [&] { choose_data_files(listing, "fr"); });
  expect_error(ExitCode::kUnusable, {"--config", "en, de"}, [&] { choose_data_files(listing, ""); });
}

TEST(DataFiles, ADamagedCardIsNamedWithItsLine) {
  const auto choose = [](const std::string& card) {
    choose_data_files({.place = "here", .files = {"a.csv"}, .readme = card}, "");
  };
  expect_error(ExitCode::kUnusable, {"here/README.md:2", "plain YAML"},
               [&] { choose("---\nconfigs: [\n---\n"); });
  expect_error(ExitCode::kUnusable, {"README.md", "list of configurations"},
               [&] { choose("---\nconfigs: yes\n---\n"); });
  expect_error(ExitCode::kUnusable, {"inside the data set", "https://host/a.csv"},
               [&] { choose("---\nconfigs:\n- config_name: a\n  data_files: https://host/a.csv\n---\n"); });
  expect_error(ExitCode::kUnusable, {"inside the data set", "../a.csv"},
               [&] { choose("---\nconfigs:\n- config_name: a\n  data_files: ../a.csv\n---\n"); });
}

TEST(DataFiles, AStandaloneFileReplacesTheConfigurationsOfTheCard) {
  const DataFiles found =
      choose_data_files({.place = "here",
                         .files = {"a.csv", "b.csv"},
                         .readme = "---\nconfigs:\n- config_name: a\n  data_files: a.csv\n---\n",
                         .standalone = "configs:\n- config_name: b\n  data_files: b.csv\n"},
                        "");
  EXPECT_EQ(found.configuration, "b");
  EXPECT_EQ(found.splits.at(0).files, std::vector<std::string>{"b.csv"});
}

TEST(DataFiles, TheExportedBranchHasAFolderForEachConfigurationAndSplit) {
  const DataListing listing{.place = "here",
                            .files = {"de/train/0000.parquet", "en/test/0000.parquet",
                                      "en/train/0000.parquet", "en/train/0001.parquet"},
                            .is_export = true};
  const DataFiles found = choose_data_files(listing, "en");
  ASSERT_EQ(found.splits.size(), 2u);
  EXPECT_EQ(find_split(found.splits, "train")->files,
            (std::vector<std::string>{"en/train/0000.parquet", "en/train/0001.parquet"}));
  expect_error(ExitCode::kUnusable, {"--config", "de, en"}, [&] { choose_data_files(listing, ""); });
}

TEST(DataFiles, AProgramIsNotRunAndTheExportIsNamed) {
  const DataListing listing{.place = "hf://datasets/a/b", .files = {"b.py", "data.zip"}};
  expect_error(ExitCode::kUnusable, {"b.py", "not run", "hf://datasets/a/b@refs/convert/parquet"},
               [&] { refuse_data_script(listing, "a/b"); });
  refuse_data_script({.place = "here", .files = {"other.py"}}, "a/b");
}

TEST(DataFiles, KindsThatAreNotReadAreNamed) {
  expect_error(ExitCode::kUnusable, {"webdataset", "not read"}, [] {
    files_of_main_kind({"a.tar", "b.tar", "c.json"}, "here");
  });
  EXPECT_EQ(files_of_main_kind({"a.parquet", "b.parquet", "LICENSE.txt"}, "here"),
            (std::vector<std::string>{"a.parquet", "b.parquet"}));
}

}  // namespace
}  // namespace tycho
