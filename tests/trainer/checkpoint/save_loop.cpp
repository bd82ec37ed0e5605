// A process for kill -9: saves checkpoint after checkpoint, and checks afterwards that none was lost.
//   save_loop RUN         resumes from the newest checkpoint and saves on and on, noting each finished one in
//   RUN/done save_loop RUN check   loads the newest, compares every byte, and holds it to RUN/done
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/lock/run_lock.h"

namespace tycho {
namespace {

int64_t last_done(const std::string& run) {
  const std::string path = run + "/done";
  if (!std::filesystem::exists(path)) return 0;
  const std::string text = read_file(path);
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return 0;
  const size_t begin = text.rfind('\n', end - 1);
  return std::stoll(text.substr(begin == std::string::npos ? 0 : begin + 1));
}

void save_on(const std::string& run) {
  const RunLock lock(real_files(), run);
  CheckpointStore store(real_files(), run + "/checkpoints", 2, lock.epoch(), [&] { lock.check(); });
  int64_t step = 0;
  if (const auto found = list_checkpoints(run + "/checkpoints"); !found.empty()) {
    store.set_resumed_from(found.front());
    step = found.front().step;
  }
  const auto done = real_files().append(run + "/done");
  const auto note = [&] {
    const std::string line = std::to_string(step) + "\n";
    done->write(line.data(), line.size());
  };
  note();  // a kill between a commit and its note left the note to us
  while (true) {
    save_step(store, ++step);
    note();
  }
}

void check(const std::string& run) {
  const int64_t done = last_done(run);
  std::vector<std::string> broken;
  const auto found = list_checkpoints(run + "/checkpoints", &broken);
  TYCHO_CHECK(broken.empty(), "broken: {}", broken.front());
  if (done == 0 && found.empty()) return;
  TYCHO_CHECK(!found.empty(), "no checkpoint after step {} was committed", done);
  const int64_t step = found.front().step;
  TYCHO_CHECK(step == done || step == done + 1, "newest is step {} after {} was committed", step, done);
  for (const CheckpointInfo& info : found) {
    CheckpointReader(info).verify();
    const std::string wrong = differences(info);
    TYCHO_CHECK(wrong.empty(), "step {} differs: {}", info.step, wrong);
  }
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    if (argc > 2)
      tycho::check(argv[1]);
    else
      tycho::save_on(argv[1]);
  } catch (const tycho::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
