// Chooses the display, opens the run and trains it to the end.
#include "trainer/run/run.h"

#include <unistd.h>

#include "trainer/base/error.h"
#include "trainer/run/open_session.h"
#include "trainer/session/train_to_end.h"

namespace tycho {

int run_training(const RunRequest& request, bool tty, const std::atomic<int>& stop) {
  std::unique_ptr<Reporter> display;
  if (request.place.rank == 0)
    display = tty ? make_terminal_reporter(STDOUT_FILENO) : make_plain_reporter(STDOUT_FILENO);
  const std::unique_ptr<TrainingSession> session = open_session(request, std::move(display), stop);
  const int64_t first_step = session->state().train.step;
  try {
    return train_to_end(*session);
  } catch (const Error&) {
    if (request.before_first_step != nullptr)
      *request.before_first_step = session->state().train.step == first_step;
    throw;
  }
}

}  // namespace tycho
