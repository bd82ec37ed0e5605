// tycho doctor: checks whether this machine is ready for a run.
#include <array>

#include "host/doctor/finding.h"
#include "host/verb.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {

const VerbSpec kDoctorSpec = {
    "doctor [FOLDER]",
    "Checks this machine and says what to do about problems; FOLDER is where runs are written (default: "
    "runs).",
    "  tycho doctor\n"
    "  tycho doctor /scratch/runs --json\n"
    "  srun tycho doctor                               # on the node that will train",
    {kJsonOption}};

namespace {

constexpr std::array<const char*, 3> kNames = {"ok", "warn", "fail"};

const char* name_of(Health health) { return kNames[static_cast<size_t>(health)]; }

std::vector<Finding> all_findings(const std::string& folder) {
  std::vector<Finding> findings;
  for (const auto& some :
       {check_processor(), check_memory(), check_gpus(), check_gpu_settings(), check_engine(), check_lua(),
        check_disk(folder), check_limits(), check_slurm(), check_own()})
    findings.insert(findings.end(), some.begin(), some.end());
  return findings;
}

}  // namespace

int run_doctor(const Arguments& arguments) {
  no_more_words(arguments, 1);
  const std::vector<Finding> findings = all_findings(arguments.words.empty() ? "runs" : arguments.words[0]);
  Json json = Json::array();
  int worst = 0;
  for (const Finding& one : findings) {
    worst = std::max(worst, static_cast<int>(one.health));
    json.push_back({{"subject", one.subject},
                    {"level", name_of(one.health)},
                    {"text", one.text},
                    {"advice", one.advice}});
    if (arguments.has("json")) continue;
    fmt::print("{:<4}  {:<13} {}\n", name_of(one.health), one.subject, one.text);
    if (!one.advice.empty()) fmt::print("{:20}{}\n", "", one.advice);
  }
  if (arguments.has("json")) fmt::print("{}\n", json.dump(2));
  return static_cast<int>(worst == static_cast<int>(Health::kFail) ? ExitCode::kFailure : ExitCode::kOk);
}

}  // namespace tycho
