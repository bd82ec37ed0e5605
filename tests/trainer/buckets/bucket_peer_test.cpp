// The cases of every store on a server that TYCHO_BUCKET_PEER names, for tests/host/buckets_peer.sh.
#include <unistd.h>

#include "tests/trainer/buckets/bucket_conformance.h"
#include "trainer/base/environment.h"
#include "trainer/buckets/open_bucket.h"

namespace tycho::testing {
namespace {

/// A folder of the server for each case.
class PeerPlace final : public BucketPlace {
 public:
  std::unique_ptr<Bucket> open() override {
    return open_bucket(parse_remote(environment_variable("TYCHO_BUCKET_PEER") + "/" +
                                    ::testing::UnitTest::GetInstance()->current_test_info()->name()),
                       {.retries = 2, .stall_s = 60, .first_wait_s = 0.1});
  }
  void leave_unfinished(const std::string& name) override {
    std::string path = std::filesystem::temp_directory_path() / fmt::format("tycho-peer-{}", ::getpid());
    std::ofstream(path) << std::string(static_cast<size_t>(2 * part_bytes() + 1), 'y');
    std::stop_source stop;
    // Stops after the first part, as far as the server can see.
    EXPECT_THROW(open()->put_file(name, path, 2 * part_bytes() + 1,
                                  {.part_bytes = part_bytes(),
                                   .num_connections = 1,
                                   .progress = [&](int64_t) { stop.request_stop(); }},
                                  stop.get_token()),
                 Error);
    std::filesystem::remove(path);
  }
  int64_t part_bytes() const override { return 5 << 20; }
  bool knows_ages() const override { return false; }  // moto's uploads are of 2010
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BucketConformance);
INSTANTIATE_TEST_SUITE_P(
    Peer, BucketConformance,
    ::testing::ValuesIn(environment_variable("TYCHO_BUCKET_PEER").empty()
                            ? std::vector<BucketKind>()
                            : std::vector<BucketKind>{{"Server",
                                                       [] { return std::make_unique<PeerPlace>(); }}}),
    [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace tycho::testing
