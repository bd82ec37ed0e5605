// Requests and cache of huggingface_hub, compared with ours.
#include <algorithm>
#include <fstream>

#include "tests/trainer/hub/hub_fixture.h"
#include "trainer/base/environment.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class HubGoldenTest : public testing::HubFixture {
 protected:
  HubGoldenTest() : golden_(Json::parse(read_file(std::string(TYCHO_GOLDEN_DIR) + "/hub/downloads.json"))) {
    for (const auto& [path, file] : golden_.at("files").items())
      server_.add_file("models/tests/tiny", path, file.at("text"), file.at("is_large"));
    for (auto& [path, file] : server_.add("models/tests/tiny").files)
      if (file.is_large) file.xet_hash = golden_.at("xet_hash");
    ::setenv("HF_TOKEN", "hf_atokenoftests", 1);
  }

  /// Returns files and links of the cache as the golden has them.
  Json cache() const {
    Json found = Json::object();
    const std::string root = home_ + "/hub";
    for (const auto& one : fs::recursive_directory_iterator(root)) {
      const std::string name = one.path().string().substr(root.size() + 1);
      if (one.is_symlink())
        found[name] = {{"link", fs::read_symlink(one.path()).string()}};
      else if (one.is_regular_file() && !name.starts_with(".locks"))
        found[name] = {{"text", read_file(one.path().string())}};
    }
    return found;
  }

  Json golden_;
};

TEST_F(HubGoldenTest, AsksWhatTheOfficialClientAsks) {
  local_path("hf://tests/tiny");
  std::vector<std::string> asked = server_.requests();
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(asked, golden_.at("requests").get<std::vector<std::string>>());
}

TEST_F(HubGoldenTest, LeavesTheCacheOfTheOfficialClient) {
  local_path("hf://tests/tiny");
  Json ours = cache(), wanted = golden_.at("cache");
  for (auto& [name, one] : wanted.items()) {
    ASSERT_TRUE(ours.contains(name)) << name;
    // JSON of listings is compared by its contents.
    if (name.ends_with(".json") && name.find("/trees/") != std::string::npos)
      EXPECT_EQ(Json::parse(ours[name].at("text").get<std::string>()),
                Json::parse(one.at("text").get<std::string>()));
    else
      EXPECT_EQ(ours[name], one) << name;
  }
  EXPECT_EQ(ours.size(), wanted.size()) << ours.dump(1);
  if (const std::string kept = environment_variable("TYCHO_KEEP_HUB_CACHE"); !kept.empty())
    fs::copy(home_ + "/hub", kept, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

TEST_F(HubGoldenTest, ReadsTheCacheOfTheOfficialClientWithoutARequest) {
  for (const auto& [name, one] : golden_.at("cache").items()) {
    const std::string path = home_ + "/hub/" + name;
    fs::create_directories(fs::path(path).parent_path());
    if (one.contains("link"))
      fs::create_symlink(one.at("link").get<std::string>(), path);
    else
      std::ofstream(path) << one.at("text").get<std::string>();
  }
  const std::string folder = local_path("hf://tests/tiny");
  for (const auto& [path, file] : golden_.at("files").items())
    EXPECT_EQ(read_file(folder + "/" + path), file.at("text").get<std::string>());
  EXPECT_EQ(server_.num_requests(), 0);
}

}  // namespace
}  // namespace tycho
