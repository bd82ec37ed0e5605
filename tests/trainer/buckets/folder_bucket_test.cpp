// A folder as a store of objects.
#include "trainer/buckets/folder_bucket.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/trainer/buckets/bucket_conformance.h"
#include "trainer/buckets/open_bucket.h"

namespace tycho::testing {
namespace {

class FolderPlace final : public BucketPlace {
 public:
  FolderPlace() {
    std::string pattern = std::filesystem::temp_directory_path() / "tycho-bucket-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~FolderPlace() override { std::filesystem::remove_all(path_); }
  std::unique_ptr<Bucket> open() override { return open_bucket(parse_remote("file://" + path_ + "/store")); }
  void leave_unfinished(const std::string& name) override {
    const std::filesystem::path path = path_ + "/store/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path.parent_path() / (".tycho-upload-1-2-" + path.filename().string())) << "half of it";
  }

 private:
  std::string path_;
};

INSTANTIATE_TEST_SUITE_P(Stores, BucketConformance,
                         ::testing::Values(BucketKind{"Folder",
                                                      [] { return std::make_unique<FolderPlace>(); }}),
                         [](const auto& kind) { return kind.param.name; });

TEST(FolderBucketTest, ShowsAnObjectOnlyWhenItIsWhole) {
  FolderPlace place;
  const auto bucket = place.open();
  const std::string path = bucket->place_of("shard");
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path + ".local") << std::string(9 << 20, 'x');
  std::stop_source stop;
  // The progress of the first piece ends the upload before the object has its name.
  EXPECT_THROW(bucket->put_file("shard", path + ".local", 9 << 20,
                                {.progress =
                                     [&](int64_t) {
                                       EXPECT_EQ(bucket->get("shard", 1 << 30), std::nullopt);
                                       stop.request_stop();
                                     }},
                                stop.get_token()),
               Error);
  EXPECT_EQ(bucket->list("shard").size(), 1u);  // shard.local
  EXPECT_EQ(bucket->abort_unfinished("", -3600), 0);
}

TEST(FolderBucketTest, RemovesFoldersThatBecomeEmpty) {
  FolderPlace place;
  const auto bucket = place.open();
  bucket->put("run/step-1/COMMIT", "x", PutWhen::kAlways);
  bucket->put("run/step-2/COMMIT", "x", PutWhen::kAlways);
  bucket->remove({"run/step-1/COMMIT"});
  EXPECT_FALSE(std::filesystem::exists(bucket->place_of("run/step-1")));
  EXPECT_TRUE(std::filesystem::exists(bucket->place_of("run/step-2/COMMIT")));
}

TEST(FolderBucketTest, AWebServerIsNoStore) {
  for (const char* place : {"https://host/path", "hf://datasets/owner/name"}) {
    try {
      open_bucket(parse_remote(place));
      ADD_FAILURE() << place;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      EXPECT_NE(std::string(error.what()).find("cannot be written to"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tycho::testing
