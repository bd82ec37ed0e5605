// tycho report: one page about runs.
#include "host/run_report.h"
#include "host/text_table.h"
#include "host/verb.h"
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
    "  tycho report runs/demo --json\n"
    "  tycho report runs/demo --collectives            # which rank the others waited for",
    {{"out", "The page to write: report.html by default, and none with --json.", "FILE"},
     {"plot", "Metrics to show first, by names or patterns ('grad/*,loss_ema'): the keys of metrics.jsonl.",
      "NAMES"},
     {"smooth", "Begin with a moving average over each curve: the weight of the past, from 0 to below 1.",
      "WEIGHT", "0"},
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

}  // namespace

int run_report(const Arguments& arguments) {
  if (arguments.has("collectives")) return report_collectives(arguments);
  std::vector<std::string> folders;
  std::vector<BenchFile> benches;
  for (const std::string& word : arguments.words) {
    if (word.ends_with(".json"))
      benches.push_back(read_bench_file(word));
    else
      folders.push_back(word);
  }
  std::vector<std::string> patterns;
  if (arguments.has("plot")) patterns = arguments.list("plot");
  std::vector<std::string> all = patterns;
  all.emplace_back("*");
  const std::vector<RunSummary> runs =
      folders.empty() && !benches.empty() ? std::vector<RunSummary>() : read_runs(folders, all);
  const std::string out = arguments.has("out") ? arguments.text("out") : "report.html";
  if (arguments.has("out") || !arguments.has("json"))
    write_typed_file(real_files(), out,
                     run_page(runs, benches,
                              {.smoothing = arguments.number("smooth", 0, 0.999),
                               .chosen = patterns,
                               .parents = read_parents(runs, all)}));
  if (arguments.has("json")) {
    fmt::print("{}\n", runs_json(runs).dump(2));
    return 0;
  }
  if (!runs.empty()) print_runs(runs);
  for (const BenchFile& bench : benches)
    fmt::print("{}{}\n{}", &bench == &benches.front() && runs.empty() ? "" : "\n", bench.title,
               text_table(bench.table));
  fmt::print("\n{} has plots of {}\n", out, arguments.words.size() == 1 ? "it" : "them");
  return 0;
}

}  // namespace tycho
