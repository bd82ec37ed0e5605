// Tokens that are handed over in files, and files that are not trusted.
#include "trainer/rendezvous/job_token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/rendezvous/refusal.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

TEST(JobTokenFile, IsReadByTheRanksOfItsJobAndGoesWithItsOwner) {
  const TempDir dir;
  const std::string path = dir / "join";
  EXPECT_FALSE(find_token(path, "job"));
  {
    const JobTokenFile file(path, "job");
    EXPECT_EQ(find_token(path, "job"), file.token());
    EXPECT_EQ(file.token().size(), 32U);
    EXPECT_FALSE(find_token(path, "another job"));
    struct stat facts = {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U);
    EXPECT_TRUE(holds_secret(file.token()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(JobTokenFile, ANewOneTakesThePlaceOfWhatAnEarlierStartLeft) {
  const TempDir dir;
  const std::string path = dir / "join";
  std::ofstream(path) << "left behind";
  const JobTokenFile file(path, "job");
  EXPECT_EQ(find_token(path, "job"), file.token());
}

TEST(JobTokenFile, MakesTheFolderThatItLiesIn) {
  const TempDir dir;
  const JobTokenFile file(dir / "runs/join", "job");
  EXPECT_EQ(find_token(dir / "runs/join", "job"), file.token());
}

TEST(JobTokenFile, FilesThatOthersCouldHaveWrittenOrReadAreRefused) {
  const TempDir dir;
  const std::string path = dir / "join";
  const auto find = [&] { find_token(path, "job"); };
  {
    const JobTokenFile file(dir / "real", "job");
    std::filesystem::create_symlink("real", path);
    EXPECT_CONTAINS(refusal_of(find), "it is a link. Set TYCHO_TOKEN");
    std::filesystem::remove(path);
    std::filesystem::create_hard_link(dir / "real", path);
    EXPECT_CONTAINS(refusal_of(find), "it is not a file of its own");
    std::filesystem::remove(path);
    chmod((dir / "real").c_str(), 0640);
    std::filesystem::rename(dir / "real", path);
    EXPECT_CONTAINS(refusal_of(find), "others may read it");
    std::filesystem::remove(path);
  }
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_CONTAINS(refusal_of(find), "it is not a file of its own");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_CONTAINS(refusal_of(find), "it is not a file of its own");
  std::filesystem::remove(path);
  if (geteuid() != 0) return;  // only root can give a file away
  { std::ofstream(path) << "x"; }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(chown(path.c_str(), 4242, 4242), 0);
  EXPECT_CONTAINS(refusal_of(find), "it belongs to another user");
}

TEST(JobTokenFile, AnyOtherContentIsNoToken) {
  const TempDir dir;
  const std::string path = dir / "join";
  std::string whole;
  {
    const JobTokenFile file(path, "job");
    std::getline(std::ifstream(path), whole, '\0');
  }
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() - 1), whole + "x", std::string(100000, 'x')}) {
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
    EXPECT_FALSE(find_token(path, "job")) << text.substr(0, 200);
  }
}

TEST(JobTokenFile, RanksOnSeveralMachinesNeedASharedFolder) {
  RankInfo place{
      .rank = 1, .num_ranks = 4, .num_local_ranks = 2, .address = "node1", .port = 20001, .source = "Slurm"};
  EXPECT_CONTAINS(refusal_of([&] { token_path(place, ""); }),
                  "Set TYCHO_TOKEN in the environment of all ranks");
  const std::string path = token_path(place, "/shared/runs");
  EXPECT_EQ(path.rfind("/shared/runs/.tycho-join-", 0), 0U) << path;
  RankInfo other = place;
  other.rank = 3;
  EXPECT_EQ(token_path(other, "/shared/runs"), path);
  other.port = 20002;
  EXPECT_NE(token_path(other, "/shared/runs"), path);
}

TEST(JobTokenFile, RanksOfOneMachineUseAFolderOfThisUserAlone) {
  const RankInfo place{.rank = 1, .num_ranks = 2, .num_local_ranks = 2, .source = "Slurm"};
  const std::string folder = std::filesystem::path(token_path(place, "")).parent_path();
  struct stat facts = {};
  ASSERT_EQ(lstat(folder.c_str(), &facts), 0);
  EXPECT_TRUE(S_ISDIR(facts.st_mode));
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  EXPECT_EQ(facts.st_uid, geteuid());
}

}  // namespace
}  // namespace tycho
