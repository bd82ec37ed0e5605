// A store for scripts: prints its URL, kills on command, and ends with its standard input.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/trainer/buckets/azure_server.h"
#include "tests/trainer/buckets/s3_server.h"

namespace {

namespace fs = std::filesystem;
using tycho::testing::StoreFault;

/// Returns the first process of the file "victim": of "PID", or with "PID children" the last child of PID.
pid_t victim_of(const fs::path& folder) {
  std::ifstream file(folder / "victim");
  pid_t pid = 0;
  std::string rest;
  file >> pid >> rest;
  if (rest == "children") {
    std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    pid_t last = 0;
    for (pid_t child; children >> child;) last = child;
    pid = last;
  }
  return pid;
}

/// Kills the victim at a request: the file "kill_after" has the number of requests before it, and "before" or
/// "after", which says whether the request is done.
class Killer {
 public:
  explicit Killer(fs::path folder) : folder_(std::move(folder)) {}
  StoreFault at_request() {
    if (fs::exists(folder_ / "kill_after")) {
      std::ifstream(folder_ / "kill_after") >> left_ >> when_;
      fs::remove(folder_ / "kill_after");
    }
    if (left_ < 0 || left_-- > 0) return StoreFault::kNone;
    if (const pid_t pid = victim_of(folder_); pid > 1) ::kill(pid, SIGKILL);
    std::ofstream(folder_ / "killed") << "yes\n";
    return when_ == "after" ? StoreFault::kDropAfter : StoreFault::kDropBefore;
  }

 private:
  fs::path folder_;
  int left_ = -1;
  std::string when_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return std::fprintf(stderr, "serve_store s3|azure FOLDER\n"), 2;
  const fs::path folder = arguments[2];
  std::unique_ptr<tycho::testing::StoreServer> server;
  if (std::string(arguments[1]) == "s3")
    server = std::make_unique<tycho::testing::S3Server>();
  else
    server = std::make_unique<tycho::testing::AzureServer>();
  Killer killer(folder);
  server->fault = [&](int) { return killer.at_request(); };
  std::ofstream log(folder / "requests");
  server->answered = [&](const tycho::testing::SeenRequest& request,
                         const tycho::testing::ServerReply& reply) {
    log << reply.status << ' ' << request.method << ' ' << request.path << ' ' << request.body.size() << ' '
        << reply.body.size() << std::endl;
  };
  std::printf("%s\n", server->url().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
