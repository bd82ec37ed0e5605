// Rows that conversion reads from data sets of the hub, against those that the library `datasets` reads:
// tests/golden/hub/rows.py, and datasets_peer.sh, which asks that library again.
#include <filesystem>
#include <sstream>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/hub/hub_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/data/sources/document_reader.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/http/http_exchange.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class HubRowsTest : public testing::HubFixture {
 protected:
  HubRowsTest() {
    const fs::path root = testing::golden("hub/rows");
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = fs::relative(entry.path(), root).string();
      const size_t slash = path.find('/');
      server_.add_file("datasets/rows/" + path.substr(0, slash), path.substr(slash + 1),
                       read_file(entry.path().string()), entry.file_size() > 400);
    }
  }
  static std::vector<std::string> documents_of(const std::vector<InputFile>& files) {
    std::vector<std::string> documents;
    DocumentReader reader(files, {});
    while (const auto chunk = reader.next()) {
      if (chunk->format != TextFormat::kText)
        for_each_record(*chunk, reader.file(*chunk), "text",
                        [&](std::string_view text) { documents.emplace_back(text); });
      else if (chunk->first)
        documents.push_back(chunk->text);
      else
        documents.back() += chunk->text;
    }
    return documents;
  }

  testing::TempDir temp_;
};

TEST_F(HubRowsTest, AreThoseOfDatasets) {
  const Json cases = Json::parse(read_file(testing::golden("hub/rows.json")));
  EXPECT_GE(cases.size(), 13u);
  for (const Json& one : cases) {
    const std::string repository = one.at("repository"), configuration = one.at("configuration");
    SCOPED_TRACE(repository + " " + configuration + " " + one.at("split").get<std::string>());
    const InputFiles found = find_input_files(
        {"hf://datasets/" + repository}, {.split = one.at("split"),
                                          .configuration = configuration == "default" ? "" : configuration,
                                          .passing_folder = temp_ / "passing"});
    EXPECT_EQ(documents_of(found.files), one.at("texts").get<std::vector<std::string>>());
  }
}

// The log of datasets_peer.sh: what that library asks, the stand-in goes on to know.
TEST_F(HubRowsTest, TheStandInAnswersWhatDatasetsAsks) {
  std::istringstream log(read_file(testing::golden("hub/rows_asked.txt")));
  int count = 0;
  for (std::string line; std::getline(log, line); ++count) {
    std::istringstream words(line);
    std::string host, path;
    HttpCall call;
    words >> host >> call.method >> path;
    call.url = (host == "hub" ? server_.url() : server_.second_url()) + path;
    EXPECT_LT(http_exchange(call).status, 500) << line;
  }
  EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace tycho
