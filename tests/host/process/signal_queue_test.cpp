// Signals that are kept and told one by one.
#include "host/process/signal_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tycho {
namespace {

TEST(SignalQueueTest, KeepsSignalsWithTheirSenderAndGivesTheOldBlockingBack) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  {
    SignalQueue queue({SIGUSR1, SIGTERM});
    EXPECT_FALSE(queue.next());
    kill(getpid(), SIGUSR1);
    const auto info = queue.next();
    ASSERT_TRUE(info);
    EXPECT_EQ(info->ssi_signo, static_cast<uint32_t>(SIGUSR1));
    EXPECT_EQ(info->ssi_pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(info->ssi_code, SI_USER);
    EXPECT_FALSE(queue.next());
  }
  sigprocmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

TEST(SignalQueueTest, LeavesIgnoredSignalsIgnored) {
  const auto before = signal(SIGUSR2, SIG_IGN);
  {
    SignalQueue queue({SIGUSR1, SIGUSR2});
    kill(getpid(), SIGUSR2);
    EXPECT_FALSE(queue.next());
  }
  signal(SIGUSR2, before);
}

}  // namespace
}  // namespace tycho
