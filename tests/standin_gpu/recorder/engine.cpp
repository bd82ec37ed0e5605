// An engine that writes down what rank 0 of a run gives its GPU: `tycho run` with it opens the run, does two
// steps in record mode, and ends. The other ranks need not exist.
#include "trainer/session/engine.h"

#include <c10/core/InferenceMode.h>

#include <string>

#include "tests/standin_gpu/recorder/lone_rank.h"
#include "tests/standin_gpu/runtime/record.h"
#include "trainer/recipe/parallel.h"
#include "trainer/run/open_session.h"
#include "trainer/sharding/init.h"

namespace {

int record_run(const tycho::RunRequest& request, bool, const tycho::StopFlag& stop) {
  const auto lone_rank = [&](const tycho::RankInfo& place, const tycho::MeetOptions&, tycho::SumOrder) {
    if (place.num_ranks == 1) return tycho::make_world_of_one();
    return standin::lone_rank_of(tycho::mesh_shape(request.config.parallel, place.num_ranks));
  };
  const auto session = tycho::open_session(request, nullptr, stop, lone_rank);
  standin_mark("start");
  for (const char* title : {"step 1", "step 2"}) {
    session->step(1);
    standin_mark(title);
  }
  standin_mark(("peak " + std::to_string(session->memory().peak)).c_str());
  session->close("recorded", {});
  return 0;
}

const tycho::EngineApi kApi = {.run = &record_run};

}  // namespace

// Drawing billions of numbers, which nobody would read, takes most of a start.
extern "C" void __wrap__ZN5tycho10initialiseERKNS_10OwnedRangeEm(const tycho::OwnedRange& range, uint64_t) {
  range.refresh_from_master();
}

extern "C" __attribute__((visibility("default"))) const tycho::EngineApi* tycho_engine_api() { return &kApi; }
