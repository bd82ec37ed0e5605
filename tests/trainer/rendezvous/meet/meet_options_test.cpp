// How long ranks wait for each other where nobody says it.
#include "trainer/rendezvous/meet/meet_options.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/trainer/rendezvous/rank_threads.h"
#include "trainer/rendezvous/launcher_reports.h"
#include "trainer/rendezvous/meet/rendezvous.h"

namespace tycho {
namespace {

/// What rank 0 says first while it waits for rank 1, which does not come; a signal ends the wait then.
std::string first_line(const Environment& variable) {
  std::string line;
  std::atomic<int> stop = 0;
  MeetOptions options;
  options.stop = &stop;
  options.variable = variable;
  options.say = [&](const std::string& said) {
    line = said;
    stop = SIGTERM;
  };
  const std::vector<Ended> ended = at_places(2, [&](const RankInfo& place) {
    if (place.rank == 0) rendezvous(place, options);
  });
  EXPECT_EQ(static_cast<int>(ended[0].code), 128 + SIGTERM);
  return line;
}

TEST(MeetOptions, RanksOfOneLauncherHaveAMinuteToComeAndOthersTen) {
  const std::string launched = first_line([](const std::string& name) {
    return name == kReportVariable ? std::optional<std::string>("9") : std::nullopt;
  });
  EXPECT_TRUE(launched.starts_with("[ranks] waiting for rank 1 of 2; gives up in 5")) << launched;
  EXPECT_EQ(launched.find(" s"), launched.find("gives up in ") + 14) << "two digits: " << launched;
  const std::string other = first_line([](const std::string&) { return std::nullopt; });
  EXPECT_TRUE(other.starts_with("[ranks] waiting for rank 1 of 2; gives up in 59")) << other;
}

}  // namespace
}  // namespace tycho
