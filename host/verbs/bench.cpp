// tycho bench: measures the collectives between ranks, a folder, training data, steps, and how runs scale.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include "host/bench/loader.h"
#include "host/bench/runs.h"
#include "host/engine.h"
#include "host/signals.h"
#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/measure/storage_bench.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

const VerbSpec kBenchSpec = {
    "bench comm\n       tycho bench storage FOLDER\n       tycho bench data RECIPE [key=value ...]\n"
    "       tycho bench step RECIPE [key=value ...]\n       tycho bench scale RUN...",
    "Measures this cluster: the collectives between ranks, a folder for data and checkpoints, how fast a "
    "recipe's training data is read, its steps, or how runs that were made on several numbers of ranks "
    "scale.",
    "  tycho launch -n 2 bench comm -b 1K -e 64M -f 4\n"
    "  srun --ntasks-per-node=8 --gpus-per-node=8 tycho bench comm -b 8 -e 8G\n"
    "  tycho bench storage runs --size 1GiB --files 8\n"
    "  tycho bench data pretrain.lua --batches 500\n"
    "  tycho bench step recipes/demo.lua --iterations 20\n"
    "  tycho bench scale runs/nodes-1 runs/nodes-2 runs/nodes-4",
    {{"b,min-bytes", "For comm: the smallest size; K, M and G are powers of 1024.", "SIZE", "8"},
     {"e,max-bytes", "For comm: the largest size.", "SIZE", "64M"},
     {"f,factor", "For comm: between one size and the next.", "N", "2"},
     {"n,iterations", "Timed calls of each collective, or timed steps.", "N", "20"},
     {"w,warmup", "Calls or steps before these.", "N", "5"},
     {"verbs", "For comm: which to measure, split at commas. Default: all.", "NAMES"},
     {"mesh", "For comm: dp_replicate=2,dp_shard=4 measures along each axis. Default: all ranks together.",
      "SIZES"},
     {"device", "For comm: auto, cpu or cuda.", "NAME", "auto"},
     {"size", "For storage: of each file.", "SIZE", "256MiB"},
     {"files", "For storage: files that are written or read at once.", "N", "4"},
     {"batches", "For data: batches to read; 0 for an epoch.", "N", "0"},
     {"ranks", "For data: ranks of the run; this process reads the share of the first.", "N", "1"},
     kJsonOption,
     kTraceOption}};

namespace {

/// Reads "8", "64K" and "8G" like nccl-tests, "64MiB" and "1GB" like recipes.
int64_t size_of(const Arguments& arguments, const char* option) {
  std::string text = arguments.text(option);
  constexpr std::string_view kUnits = "KMGT";
  if (!text.empty()) {
    const auto unit = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
    if (kUnits.find(unit) != std::string_view::npos) text = text.substr(0, text.size() - 1) + unit + "iB";
  }
  try {
    return Bytes::parse(text).value;
  } catch (const Error&) {
    fail(ExitCode::kUsage, "[bench] --{} is a size such as 8, 64K or 1GiB; got {}", option,
         arguments.text(option));
  }
}

// comm

double bytes_per_s(const CommTiming& timing, const CommForm& form) {
  return form.seconds > 0 ? static_cast<double>(timing.num_bytes) / form.seconds : 0;
}

std::string form_text(const CommTiming& timing, const std::optional<CommForm>& form) {
  if (!form) return fmt::format("{:>10}{:>8}{:>8}{:>7}", "-", "-", "-", "-");
  const double rate = bytes_per_s(timing, *form) / 1e9;
  if (timing.count == 0) return fmt::format("{:>10.2f}{:>8}{:>8}{:>7}", form->seconds * 1e6, "-", "-", "-");
  return fmt::format("{:>10.2f}{:>8.2f}{:>8.2f}{:>7}", form->seconds * 1e6, rate, rate * timing.bus_factor,
                     form->num_wrong);
}

Json form_json(const CommTiming& timing, const std::optional<CommForm>& form) {
  if (!form) return nullptr;
  const double rate = bytes_per_s(timing, *form);
  return {{"seconds", form->seconds},
          {"alg_bytes_per_s", rate},
          {"bus_bytes_per_s", rate * timing.bus_factor},
          {"num_wrong", form->num_wrong}};
}

Json timing_json(const CommTiming& timing) {
  return {{"verb", timing.op},
          {"axis", timing.axis},
          {"group_size", timing.group_size},
          {"num_bytes", timing.num_bytes},
          {"count", timing.count},
          {"out_of_place", form_json(timing, timing.out_of_place)},
          {"in_place", form_json(timing, timing.in_place)}};
}

void print_comm_header(const RankInfo& place, const CommBenchRequest& request) {
  fmt::print("# {} rank{}{}, fp32, {} calls after {}\n", place.num_ranks, place.num_ranks == 1 ? "" : "s",
             place.source.empty() ? "" : " by " + place.source, request.iterations, request.warmup);
  fmt::print("# algbw: size over time; busbw: bytes over each link, in GB/s (powers of 1000)\n");
  fmt::print("{:<15}{:<13}{:>6}{:>12}{:>12}  {:>33}{:>33}\n", "", "", "", "", "", "out of place      ",
             "in place      ");
  const std::string form = fmt::format("{:>10}{:>8}{:>8}{:>7}", "time/us", "algbw", "busbw", "#wrong");
  fmt::print("{:<15}{:<13}{:>6}{:>12}{:>12}  {}{}\n", "verb", "axis", "ranks", "size/B", "count", form, form);
}

void print_timing(const CommTiming& timing) {
  fmt::print("{:<15}{:<13}{:>6}{:>12}{:>12}  {}{}\n", timing.op, timing.axis, timing.group_size,
             timing.num_bytes, timing.count, form_text(timing, timing.out_of_place),
             form_text(timing, timing.in_place));
  std::fflush(stdout);
}

/// Plots the bandwidth of all_reduce, or of the first operation measured, over the sizes.
void plot_bandwidth(const std::vector<CommTiming>& timings) {
  Curve curve;
  for (const CommTiming& timing : timings) {
    if (timing.count == 0 || timing.op != timings.front().op || timing.axis != timings.front().axis) continue;
    const CommForm& form = timing.in_place ? *timing.in_place : *timing.out_of_place;
    curve.x.push_back(std::log2(static_cast<double>(timing.num_bytes)));
    curve.y.push_back(bytes_per_s(timing, form) * timing.bus_factor / 1e9);
  }
  if (curve.x.size() < 3) return;
  fmt::print(
      "\n{}",
      plot(curve, {.unicode = locale_is_utf8(),
                   .title = fmt::format("{} along {}: busbw, GB/s", timings.front().op, timings.front().axis),
                   .x_label = "log2 of the size"}));
}

int comm(const Arguments& arguments) {
  no_more_words(arguments, 1);
  CommBenchRequest request;
  request.min_bytes = size_of(arguments, "min-bytes");
  request.max_bytes = size_of(arguments, "max-bytes");
  request.factor = arguments.integer("factor", 2, 1 << 20);
  request.iterations = static_cast<int>(arguments.integer("iterations", 1, 1'000'000));
  request.warmup = static_cast<int>(arguments.integer("warmup", 0, 1'000'000));
  if (arguments.has("verbs")) request.collectives = arguments.list("verbs");
  if (arguments.has("mesh")) request.mesh = arguments.text("mesh");
  request.device = arguments.text("device");
  const RankInfo place = find_rank_place(process_environment());
  const bool wants_json = arguments.has("json");
  const StopFlag& stop = stop_on_signals();
  std::vector<CommTiming> timings;
  if (place.rank == 0 && !wants_json) print_comm_header(place, request);
  const int signal = open_engine(0).bench_comm(request, place, stop, [&](const CommTiming& timing) {
    timings.push_back(timing);
    if (!wants_json) print_timing(timing);
  });
  int64_t num_wrong = 0;
  for (const CommTiming& timing : timings)
    for (const auto& form : {timing.out_of_place, timing.in_place}) num_wrong += form ? form->num_wrong : 0;
  if (place.rank == 0 && wants_json) {
    Json lines = Json::array();
    for (const CommTiming& timing : timings) lines.push_back(timing_json(timing));
    fmt::print("{}\n", Json{{"ranks", place.num_ranks}, {"timings", lines}}.dump(2));
  } else if (place.rank == 0) {
    plot_bandwidth(timings);
  }
  if (num_wrong > 0)
    fail(ExitCode::kFailure, "[bench] {} elements are wrong: do not train on these machines", num_wrong);
  return signal == 0 ? 0 : 128 + signal;
}

// storage

const char* name_of(Support support) {
  return support == Support::kYes ? "yes" : support == Support::kPartly ? "partly" : "no";
}

Json report_json(const StorageReport& report) {
  Json facts = Json::array(), rates = Json::array();
  for (const StorageFact& fact : report.facts)
    facts.push_back({{"name", fact.name},
                     {"support", name_of(fact.support)},
                     {"found", fact.found},
                     {"advice", fact.advice}});
  for (const StorageRate& rate : report.rates)
    rates.push_back({{"what", rate.what},
                     {"num_bytes", rate.num_bytes},
                     {"seconds", rate.seconds},
                     {"bytes_per_s", rate.bytes_per_s()}});
  return {{"folder", report.folder},
          {"file_system", report.file_system},
          {"free_bytes", report.free_bytes},
          {"advice", report.advice},
          {"facts", facts},
          {"rates", rates},
          {"fsync_s", report.fsync_s},
          {"files_per_s", report.files_per_s}};
}

constexpr double kBarColumns = 50;

void print_report(const StorageReport& report) {
  fmt::print("{}: {}", report.folder, report.file_system);
  if (report.free_bytes >= 0) fmt::print(", {} free", human_bytes(static_cast<double>(report.free_bytes)));
  fmt::print("\n\n");
  std::vector<std::vector<std::string>> facts = {{"what", "works", "found"}};
  for (const StorageFact& fact : report.facts)
    facts.push_back({fact.name, name_of(fact.support), fact.found});
  fmt::print("{}\n", text_table(facts));
  std::vector<std::vector<std::string>> rates = {{"speed", "", "size"}};
  for (const StorageRate& rate : report.rates)
    rates.push_back({rate.what, human_bytes(rate.bytes_per_s()) + "/s",
                     human_bytes(static_cast<double>(rate.num_bytes))});
  rates.push_back({"fsync of 4 KiB", fmt::format("{:.2f} ms", report.fsync_s * 1e3), ""});
  rates.push_back({"small files", fmt::format("{:.0f}/s", report.files_per_s), ""});
  fmt::print("{}", text_table(rates));
  double fastest = 0;
  for (const StorageRate& rate : report.rates) fastest = std::max(fastest, rate.bytes_per_s());
  fmt::print("\n");
  for (const StorageRate& rate : report.rates)
    fmt::print(
        "  {:<22} {}\n", rate.what,
        std::string(static_cast<size_t>(kBarColumns * rate.bytes_per_s() / std::max(fastest, 1.0) + 0.5),
                    '#'));
  std::vector<std::string> advice;
  if (!report.advice.empty()) advice.push_back(report.file_system + ": " + report.advice);
  for (const StorageFact& fact : report.facts)
    if (fact.support != Support::kYes && !fact.advice.empty())
      advice.push_back(fact.name + ": " + fact.advice);
  if (!advice.empty()) fmt::print("\n{}\n", fmt::join(advice, "\n"));
}

int storage(const Arguments& arguments) {
  StorageBenchRequest request;
  request.folder = word(arguments, 1, "a folder to measure");
  no_more_words(arguments, 2);
  request.file_bytes = size_of(arguments, "size");
  request.num_files = static_cast<int>(arguments.integer("files", 1, 1024));
  const StorageReport report = bench_storage(request, stop_on_signals());
  if (arguments.has("json"))
    fmt::print("{}\n", report_json(report).dump(2));
  else
    print_report(report);
  return 0;
}

}  // namespace

int run_bench(const Arguments& arguments) {
  return pick_subverb(arguments, "bench",
                      {{"comm", comm},
                       {"storage", storage},
                       {"data", bench_data_verb},
                       {"step", bench_step},
                       {"scale", bench_scale}});
}

}  // namespace tycho
