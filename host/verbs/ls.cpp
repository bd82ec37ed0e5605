// tycho ls: the runs of a folder.
#include <filesystem>

#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/report/run_list.h"

namespace tycho {

const VerbSpec kLsSpec = {"ls [FOLDER ...]",
                          "Lists the runs in folders (default: runs) and in their subfolders: state, step "
                          "and loss, the newest first.",
                          "  tycho ls\n"
                          "  tycho ls sweeps/lr/trials\n"
                          "  tycho ls runs --json",
                          {kJsonOption}};

int run_ls(const Arguments& arguments) {
  std::vector<std::string> folders = arguments.words;
  if (folders.empty()) folders = {"runs"};
  // Nothing has been trained here yet.
  const bool is_new = arguments.words.empty() && !std::filesystem::exists("runs");
  std::vector<RunLine> runs;
  for (const std::string& folder : is_new ? std::vector<std::string>() : folders)
    for (RunLine& run : list_runs(folder)) runs.push_back(std::move(run));
  if (arguments.has("json"))
    fmt::print("{}\n", run_list_json(runs).dump(2));
  else
    fmt::print("{}", runs.empty() ? fmt::format("no runs in {}\n", fmt::join(folders, ", "))
                                  : text_table(run_list_table(runs)));
  return 0;
}

}  // namespace tycho
