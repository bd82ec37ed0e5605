// What is a remote, and what to write instead of one that is not.
#include "trainer/recipe/remote_uri.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;
using Kind = RemoteUri::Kind;

TEST(RemotePlaceTest, ReadsEveryForm) {
  EXPECT_EQ(parse_remote("/data/c4/").folder, "/data/c4");
  EXPECT_EQ(parse_remote("file:///data/c4").folder, "/data/c4");
  EXPECT_EQ(parse_remote("data").below("train").folder, "data/train");
  const RemoteUri web = parse_remote("https://host:8443/a%20b/").below("val small");
  EXPECT_EQ(web.kind, Kind::kHttp);
  EXPECT_EQ(web.text, "https://host:8443/a%20b/val%20small");
  const RemoteUri s3 = parse_remote("s3://bucket.name/a/b/").below("train");
  EXPECT_EQ(s3.kind, Kind::kS3);
  EXPECT_EQ(s3.bucket, "bucket.name");
  EXPECT_EQ(s3.prefix, "a/b/train");
  EXPECT_EQ(parse_remote("s3://bucket").below("train").prefix, "train");
  const RemoteUri hub = parse_remote("hf://datasets/owner/name/mds").below("train");
  EXPECT_EQ(hub.kind, Kind::kHub);
  EXPECT_EQ(hub.text, "hf://datasets/owner/name/mds/train");
  EXPECT_EQ(parse_remote("hf://datasets/wikitext").below("train").text, "hf://datasets/wikitext@main/train");
}

TEST(RemotePlaceTest, RefusesWhatItCannotReadAndSaysWhatToWrite) {
  for (const auto& [remote, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "is empty"},
           {"gs:///p", "expected gs://BUCKET/PREFIX"},
           {"az://account", "expected az://ACCOUNT/CONTAINER/PREFIX"},
           {"azure://c/p", "https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX"},
           {"sftp://h/p", "sftp:// is not supported"},
           {"file://host/p", "file:///FOLDER"},
           {"s3://", "s3://BUCKET/PREFIX"},
           {"s3://a b/c", "s3://BUCKET/PREFIX"},
           {"https:///x", "names no host"},
           {"hf://spaces/owner/name", "hf://[datasets/]OWNER/NAME"},
           {"hf://dataset/owner/name", "write hf://datasets/OWNER/NAME"},
           {"/a\nb", "control character"}})
    EXPECT_NE(remote_problem(remote).find(part), std::string::npos)
        << remote << ": " << remote_problem(remote);
}

TEST(RemotePlaceTest, RefusesSecretsWithoutShowingThem) {
  for (const char* remote : {"https://me:hunter22@host/x", "https://host/x?sv=1&sig=hunter22"}) try {
      parse_remote(remote);
      ADD_FAILURE() << remote;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("hunter22"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace tycho
