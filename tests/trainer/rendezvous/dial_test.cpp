// One attempt to reach a rank: what is said of an endpoint to which there is no way.
#include "trainer/rendezvous/dial.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

DialResult dialled(const std::string& host, int port) {
  return dial(numeric_endpoint(host, port), "0123456789abcdef", {}, std::chrono::milliseconds(200),
              [] { return false; });
}

TEST(Dial, AnEndpointWithoutARouteIsToldFromOneThatRefuses) {
  // No stream leads to a group of machines: the kernel says so of every such address at once.
  const DialResult away = dialled("224.0.0.1", 9);
  EXPECT_EQ(away.how, DialResult::How::kTryAgain);
  EXPECT_TRUE(away.has_no_route) << away.why;
  EXPECT_NE(away.why.find("unreachable"), std::string::npos) << away.why;
  const DialResult refused = dialled("127.0.0.1", 1);
  EXPECT_EQ(refused.how, DialResult::How::kTryAgain);
  EXPECT_FALSE(refused.has_no_route) << refused.why;
}

}  // namespace
}  // namespace tycho
