// A data set of forty rows on a server, and a cache of it.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/storage/http_server.h"
#include "trainer/data/mds/cached_source.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho::testing {

constexpr int32_t kRows = 40, kRowTokens = 64;

class ShardCacheTest : public ::testing::Test {
 protected:
  ShardCacheTest() {
    ::setenv("no_proxy", "127.0.0.1", 1);
    write_data(temp_ / "www/train", "xxh3_128", 0);
    spec_ = {server_.url() + "/train",
             temp_ / "cache",
             "",
             {.retries = 2, .timeout_s = 2, .first_wait_s = 0.01},
             {}};
  }

  static void write_data(const std::string& dir, const std::string& hash, int32_t first,
                         const std::string& compression = "") {
    std::filesystem::create_directories(dir);
    MdsWriter writer(real_files(), dir,
                     {.columns = {{"tokens", "ndarray:int32"}},
                      .size_limit = 2000,
                      .hashes = hash.empty() ? std::vector<std::string>() : std::vector{hash},
                      .compression = compression});
    for (int32_t row = 0; row < kRows; ++row) {
      std::vector<int32_t> tokens(kRowTokens);
      std::iota(tokens.begin(), tokens.end(), first + row);
      writer.write({encode_mds_array(tokens.data(), kRowTokens, sizeof(int32_t))});
    }
    writer.finish();
  }

  MdsIndex index() {
    fetch_index(spec_);
    return read_mds_index(spec_.dir);
  }
  /// Reads every row and compares it.
  void read_all() {
    MdsReader reader(index(), [this](const MdsIndex& shards) {
      return make_cached_source(shards, VerifyShards::kOnce, spec_);
    });
    for (int32_t row = 0; row < kRows; ++row) {
      const auto array = decode_mds_array("ndarray:int32", reader.read(row)[0], "[test]");
      int32_t first = 0;
      std::memcpy(&first, array.elements, sizeof first);
      ASSERT_EQ(first, row);
    }
  }
  void fail_times(int times, const ServerReply& reply, const std::string& path) {
    server_.set_fault([=, left = std::make_shared<std::atomic<int>>(times)](const SeenRequest& request) {
      return request.path == path && left->fetch_sub(1) > 0 ? std::optional(reply) : std::nullopt;
    });
  }
  void share_with_killed_processes() {
    index();
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        try {
          read_all();
        } catch (const std::exception& error) {
          fmt::print(stderr, "{}\n", error.what());
          ::_exit(1);
        }
        ::_exit(HasFailure() ? 1 : 0);
      }
      children.push_back(child);
    }
    for (size_t i = 0; i < 8; i += 2) {
      ::usleep(2000);
      ::kill(children[i], SIGKILL);
    }
    for (size_t i = 0; i < 8; ++i) {
      int status = 0;
      ::waitpid(children[i], &status, 0);
      if (i % 2 == 1) {
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << i;
      }
    }
    read_all();
    EXPECT_TRUE(files_in(work_folder(spec_.dir)).empty());
  }
  std::set<std::string> files_in(const std::string& dir) const {
    std::set<std::string> names;
    if (std::filesystem::exists(dir))
      for (const auto& entry : std::filesystem::directory_iterator(dir))
        names.insert(entry.path().filename());
    return names;
  }
  int64_t cached_bytes() const {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(spec_.dir))
      if (entry.path().extension() == ".mds") bytes += static_cast<int64_t>(entry.file_size());
    return bytes;
  }

  TempDir temp_;
  HttpServer server_{temp_ / "www"};
  CacheSpec spec_;
};

}  // namespace tycho::testing
