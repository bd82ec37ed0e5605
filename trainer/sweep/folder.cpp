// Keeps a board beside its ledger.
#include "trainer/sweep/folder.h"

#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/sweep/claim.h"
#include "trainer/sweep/policy.h"
#include "trainer/sweep/progress.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kCompactBytes = 64 << 10;

}  // namespace

SweepFolder::SweepFolder(FileOps& files, const std::string& dir)
    : files_(files), dir_(fs::absolute(dir).lexically_normal().string()), ledger_(files, dir_) {}

void SweepFolder::refresh() {
  const Ledger::News news = ledger_.read_new();
  if (news.restarted) {
    board_.clear();
    num_facts_ = 0;
  }
  for (const Json& fact : news.facts) {
    try {
      board_.apply(fact, dir_);
    } catch (const Json::exception& error) {
      fail(ExitCode::kUnusable,
           "[sweep] {}/ledger.jsonl has an entry that this version does not understand: {}: {}", dir_,
           fact.dump(), error.what());
    }
  }
  num_facts_ += static_cast<int64_t>(news.facts.size());
}

void SweepFolder::record(const Json& fact, bool durable) {
  ledger_.append(fact, durable);
  refresh();
}

void SweepFolder::show_lost_trials() {
  for (const Json& end : ends_of_lost_trials(*this)) board_.apply(end, dir_);
}

bool SweepFolder::set_definition(const SweepDefinition& definition) {
  make_dirs(files_, dir_);
  refresh();
  const std::string hash = write_definition(files_, dir_, definition);
  if (hash == board_.definition_hash()) return false;
  record({{"type", "plan"}, {"definition", hash}});
  return true;
}

void SweepFolder::compact_if_due() {
  refresh();
  if (ledger_.num_bytes() < kCompactBytes) return;
  const std::vector<Json> facts = board_.facts();
  if (num_facts_ < 2 * static_cast<int64_t>(facts.size())) return;
  ledger_.compact(facts);
  refresh();
}

std::vector<Json> ends_of_lost_trials(const SweepFolder& folder) {
  std::vector<Json> ends;
  const double interval_s = folder.board().definition().config.heartbeat.value;
  for (const Trial& trial : folder.board().trials()) {
    if (!trial.is_working() || !is_gone(folder.dir(), trial.plan.id, trial.claim, interval_s)) continue;
    RunProgress progress(folder.run_dir(trial));
    progress.update();
    ends.push_back(
        end_fact(trial, trial.claim, trial.rung, judge_lost(trial, progress.step() - trial.last.step)));
  }
  return ends;
}

std::vector<std::string> sweep_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("sweeps", error))
    if (fs::exists(entry.path() / "ledger.jsonl")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

SweepFolder open_sweep(const std::string& name_or_dir) {
  for (const std::string& dir : {"sweeps/" + name_or_dir, name_or_dir}) {
    if (!fs::exists(dir + "/ledger.jsonl")) continue;
    SweepFolder folder(real_files(), dir);
    folder.refresh();
    if (!folder.board().has_definition())
      fail(ExitCode::kUnusable,
           "[sweep] {}/ledger.jsonl does not name a plan: start the sweep again from its file", dir);
    return folder;
  }
  fail(ExitCode::kUsage, "[sweep] no sweep {} in {}/sweeps; `tycho sweep ls` lists them{}", name_or_dir,
       fs::current_path().string(), did_you_mean(name_or_dir, sweep_names()));
}

}  // namespace tycho
