// tycho report: one page about runs.
#include <filesystem>
#include <optional>

#include "host/run_report.h"
#include "host/text_table.h"
#include "host/verb.h"
#include "host/watch_page.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"
#include "trainer/report/bench_file.h"
#include "trainer/report/run_page.h"
#include "trainer/report/run_table.h"
#include "trainer/report/waiting_ranks.h"

namespace tycho {

const VerbSpec kReportSpec = {
    "report RUN... [BENCHMARK.json...]",
    "Shows what runs took and reached, side by side, and writes a page with plots of them, and of "
    "benchmarks whose JSON was kept in files.",
    "  tycho report runs/demo\n"
    "  tycho report runs/nodes-1 runs/nodes-2 runs/nodes-4 --out scaling.html\n"
    "  tycho bench storage runs --json > storage.json; tycho report runs/demo storage.json\n"
    "  tycho report runs/demo runs/fork --plot 'grad/*' --smooth 0.9\n"
    "  tycho report runs/demo --watch                  # the open page follows the run\n"
    "  tycho report runs/demo --json\n"
    "  tycho report runs/demo --collectives            # which rank the others waited for",
    {{"out", "The page to write: report.html by default, and none with --json.", "FILE"},
     {"plot", "Metrics to show first, by names or patterns ('grad/*,loss_ema'): the keys of metrics.jsonl.",
      "NAMES"},
     {"smooth", "Begin with a moving average over each curve: the weight of the past, from 0 to below 1.",
      "WEIGHT", "0"},
     {"watch",
      "Write the page again whenever the runs have something new, until Ctrl-C; the open page reloads "
      "itself."},
     {"collectives", "Of a run whose ranks broke: the last collective of each, and who waited for whom."},
     kJsonOption}};

namespace {

int report_collectives(const Arguments& arguments) {
  no_more_words(arguments, 1);
  if (arguments.words.empty())
    fail(ExitCode::kUsage, "[tycho report] --collectives expected the folder of a run");
  const WaitingRanks waiting = waiting_ranks(arguments.words[0]);
  if (arguments.has("json"))
    fmt::print("{}\n", waiting_json(waiting).dump(2));
  else
    fmt::print("{}", waiting_text(waiting));
  return 0;
}

/// The page that was asked for.
struct PageRequest {
  std::vector<std::string> folders, chosen;
  std::vector<BenchFile> benches;
  std::string out;
  double smoothing = 0;
};

PageRequest page_request(const Arguments& arguments) {
  PageRequest request;
  for (const std::string& word : arguments.words) {
    if (word.ends_with(".json"))
      request.benches.push_back(read_bench_file(word));
    else
      request.folders.push_back(word);
  }
  if (arguments.has("plot")) request.chosen = arguments.list("plot");
  request.out = arguments.has("out") ? arguments.text("out") : "report.html";
  request.smoothing = arguments.number("smooth", 0, 0.999);
  return request;
}

/// Returns patterns of the metrics to read: the chosen ones, which must exist, and all others.
std::vector<std::string> patterns_of(const PageRequest& request) {
  std::vector<std::string> patterns = request.chosen;
  patterns.emplace_back("*");
  return patterns;
}

/// Reads the runs of the page; nothing for a page of benchmarks alone.
std::optional<RunFollower> follower_of(const PageRequest& request) {
  if (request.folders.empty() && !request.benches.empty()) return std::nullopt;
  return RunFollower(request.folders, patterns_of(request));
}

void write_page(const PageRequest& request, const std::optional<RunFollower>& follower, bool watched) {
  RunPageOptions options = {.watched = watched,
                            .stamp = page_stamp(),
                            .smoothing = request.smoothing,
                            .chosen = request.chosen,
                            .parents = {}};
  if (follower) options.parents = follower->parents();
  write_typed_file(
      real_files(), request.out,
      run_page(follower ? follower->runs() : std::vector<RunSummary>(), request.benches, options));
}

int watch_runs(const PageRequest& request, std::optional<RunFollower> follower) {
  const auto state = [&] {
    std::string files;
    for (const std::string& folder : request.folders)
      for (const char* file : {"/events.jsonl", "/metrics.jsonl", "/evals.jsonl"}) {
        std::error_code absent;
        files += fmt::format("{} ", std::filesystem::file_size(folder + file, absent));
        files += fmt::format(
            "{} ", std::filesystem::last_write_time(folder + file, absent).time_since_epoch().count());
      }
    return files;
  };
  return watch_page(request.out, state, [&](bool watched) {
    if (follower) follower->update();
    write_page(request, follower, watched);
  });
}

}  // namespace

int run_report(const Arguments& arguments) {
  if (arguments.has("collectives")) return report_collectives(arguments);
  const PageRequest request = page_request(arguments);
  if (arguments.has("watch")) {
    if (arguments.has("json"))
      fail(ExitCode::kUsage,
           "[tycho report] expected --watch or --json, got both; --watch only writes the page");
    return watch_runs(request, follower_of(request));
  }
  std::optional<RunFollower> follower = follower_of(request);
  if (follower) follower->update();
  const std::vector<RunSummary> runs = follower ? follower->runs() : std::vector<RunSummary>();
  if (arguments.has("out") || !arguments.has("json")) write_page(request, follower, false);
  if (arguments.has("json")) {
    fmt::print("{}\n", runs_json(runs).dump(2));
    return 0;
  }
  if (!runs.empty()) print_runs(runs);
  for (const BenchFile& bench : request.benches)
    fmt::print("{}{}\n{}", &bench == &request.benches.front() && runs.empty() ? "" : "\n", bench.title,
               text_table(bench.table));
  fmt::print("\n{} has plots of {}\n", request.out, arguments.words.size() == 1 ? "it" : "them");
  return 0;
}

}  // namespace tycho
