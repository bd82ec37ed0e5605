// Lays the counts and the calls of all ranks side by side, group by group.
#include "trainer/report/waiting_ranks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/rendezvous/recent_collectives.h"

namespace tycho {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr auto kLookForAnswers = std::chrono::milliseconds(100);

/// The calls of one rank in a group, or its messages in one direction between two ranks.
struct Side {
  int64_t num_calls = 0;
  std::map<int64_t, Json> calls;  // the stored ones, by number
};
/// A group's name and ranks; for messages, sender and receiver in order.
using GroupKey = std::pair<std::string, std::vector<int>>;
using Sides = std::map<GroupKey, std::map<int, Side>>;  // by rank

bool is_message(const std::string& op) { return op == "send" || op == "recv"; }

GroupKey messages_key(const std::string& group, int rank, int peer, const std::string& op) {
  const int from = op == "send" ? rank : peer, to = op == "send" ? peer : rank;
  return {fmt::format("{}, from rank {} to rank {}", group, from, to), {from, to}};
}

std::string rank_list(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// Returns "32.0 KB of fp32"; "" for a barrier.
std::string size_of(const Json& call) {
  if (call.at("verb") == "barrier") return "";
  return human_bytes(call.at("num_bytes").get<double>()) + " of " + call.at("dtype").get<std::string>();
}

std::string op_of(const Json& call) {
  const auto op = call.at("verb").get<std::string>();
  return is_message(op) ? "message" : op;
}

/// Returns the part of a call that must be equal on all ranks.
std::string kind_of(const Json& call) {
  const std::string size = size_of(call), op = op_of(call);
  const std::string root = op == "broadcast" ? fmt::format(" from rank {}", call.at("peer").get<int>()) : "";
  return op + (size.empty() ? "" : " of " + size) + root;
}

std::string what_of(const Json& call) {
  std::string text = size_of(call);
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  if (call.at("step").get<int64_t>() >= 0) add(fmt::format("step {}", call.at("step").get<int64_t>()));
  if (call.contains("unit")) add(call.at("unit").get<std::string>());
  return text;
}

bool is_done(const Json& call) { return call.at("state") == "done"; }

void add_sides(const Json& file, Sides& sides) {
  const int rank = file.at("rank").get<int>();
  std::vector<GroupKey> keys;
  for (const Json& group : file.at("groups")) {
    keys.emplace_back(group.at("name").get<std::string>(), group.at("ranks").get<std::vector<int>>());
    if (const auto count = group.at("calls").get<int64_t>(); count > 0)
      sides[keys.back()][rank].num_calls = count;
    for (const Json& one : group.at("messages"))
      sides[messages_key(keys.back().first, rank, one.at("peer").get<int>(), one.at("verb"))][rank]
          .num_calls = one.at("calls").get<int64_t>();
  }
  for (const Json& call : file.at("calls")) {
    const GroupKey& group = keys.at(call.at("group").get<size_t>());
    const auto op = call.at("verb").get<std::string>();
    const GroupKey key =
        is_message(op) ? messages_key(group.first, rank, call.at("peer").get<int>(), op) : group;
    sides[key][rank].calls[call.at("number").get<int64_t>()] = call;
  }
}

/// Returns the first call of a group that is not done on all ranks with a file; nullopt when all are. A call
/// that is no longer stored is done.
std::optional<int64_t> first_open(const std::vector<int>& ranks, const std::map<int, Side>& by_rank,
                                  const std::set<int>& with_files) {
  int64_t most = 0;
  for (const auto& [rank, side] : by_rank) most = std::max(most, side.num_calls);
  int64_t first = most;
  for (const int rank : ranks) {
    const auto found = by_rank.find(rank);
    if (with_files.count(rank) == 0) continue;
    if (found == by_rank.end()) return 0;
    first = std::min(first, found->second.num_calls);
    for (const auto& [number, call] : found->second.calls)
      if (!is_done(call)) first = std::min(first, number);
  }
  return first < most ? std::optional(first) : std::nullopt;
}

OpenCall open_call(const GroupKey& key, const std::map<int, Side>& by_rank, int64_t number,
                   const std::set<int>& with_files) {
  OpenCall open;
  open.group = key.first, open.number = number;
  std::set<std::string> kinds;
  for (const int rank : key.second) {
    const auto side = by_rank.find(rank);
    if (with_files.count(rank) == 0) {
      open.unknown.push_back(rank);
    } else if (side == by_rank.end() || number >= side->second.num_calls) {
      open.not_there.push_back(rank);
    } else if (const auto call = side->second.calls.find(number); call == side->second.calls.end()) {
      open.done.push_back(rank);
    } else {
      const Json& one = call->second;
      (is_done(one) ? open.done : open.in_it).push_back(rank);
      if (const std::string kind = kind_of(one); kinds.insert(kind).second)
        open.different.push_back(fmt::format("rank {} called {}", rank, kind));
      if (is_done(one) && !open.op.empty()) continue;
      open.op = op_of(one), open.what = what_of(one);
      if (!is_done(one)) open.longest_s = std::max(open.longest_s, one.at("ago_s").get<double>());
    }
  }
  if (open.different.size() == 1) open.different.clear();
  return open;
}

RankAtTheEnd rank_of(const Json& file) {
  RankAtTheEnd one{file.at("rank").get<int>(), true, file.at("host"), file.at("doing"), file.at("cause"), ""};
  for (const Json& call : file.at("calls"))
    if (one.in.empty() && !is_done(call))
      one.in =
          fmt::format("{} {} of {}", call.at("verb").get<std::string>(), call.at("number").get<int64_t>(),
                      file.at("groups").at(call.at("group").get<size_t>()).at("name").get<std::string>());
  return one;
}

std::vector<int> wanted_first(const WaitingRanks& waiting) {
  std::set<int> waited_for, waits;
  for (const OpenCall& call : waiting.calls) {
    waited_for.insert(call.not_there.begin(), call.not_there.end());
    waited_for.insert(call.unknown.begin(), call.unknown.end());
    waits.insert(call.in_it.begin(), call.in_it.end());
  }
  std::vector<int> first;
  std::set_difference(waited_for.begin(), waited_for.end(), waits.begin(), waits.end(),
                      std::back_inserter(first));
  return first;
}

WaitingRanks compare(const std::vector<const Json*>& files) {
  WaitingRanks waiting;
  Sides sides;
  std::set<int> with_files;
  for (const Json* file : files) {
    add_sides(*file, sides);
    with_files.insert(file->at("rank").get<int>());
    waiting.ranks.push_back(rank_of(*file));
  }
  const int num_ranks = files.front()->at("num_ranks").get<int>();
  TYCHO_CHECK(num_ranks <= kMostRanks, "expected at most {} ranks, got {}", kMostRanks, num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank)
    if (with_files.count(rank) == 0) waiting.ranks.push_back({rank, false, "", "", "", ""});
  std::sort(waiting.ranks.begin(), waiting.ranks.end(),
            [](const RankAtTheEnd& a, const RankAtTheEnd& b) { return a.rank < b.rank; });
  for (const auto& [key, by_rank] : sides)
    if (const auto number = first_open(key.second, by_rank, with_files))
      waiting.calls.push_back(open_call(key, by_rank, *number, with_files));
  waiting.first = wanted_first(waiting);
  return waiting;
}

bool is_of_one_look(const Json& a, const Json& b) {
  return a.at("world") == b.at("world") && a.at("request") == b.at("request");
}

/// Returns the current contents of the ranks' files in a folder, by path.
std::map<std::string, Json> files_in(const std::string& folder) {
  std::map<std::string, Json> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const std::string path = entry.path(); path.ends_with(".json"))
      files[path] = parse_json(read_file(path), path);
  return files;
}

/// Returns the request that a file answers, "" for none.
std::string request_of(const Json& file) { return file.is_object() ? file.value("request", "") : ""; }

/// Compares the files of one start. `others` are the paths of ignored files.
WaitingRanks compared(const std::string& folder, const std::vector<const Json*>& files,
                      std::vector<std::string> others) {
  WaitingRanks waiting = compare(files);
  waiting.folder = folder;
  waiting.ignored = std::move(others);
  return waiting;
}

[[noreturn]] void fail_foreign(const std::string& folder, const std::exception& error) {
  fail(ExitCode::kUnusable, "[report] a file in {} is not what ranks of Tycho leave there: {}", folder,
       error.what());
}

std::string conclusion(const WaitingRanks& waiting) {
  if (waiting.calls.empty()) return "No rank waited for another one.\n";
  if (waiting.first.empty())
    return "Every rank waited for others: look at calls that differ, or at the network between the ranks.\n";
  const bool one = waiting.first.size() == 1;
  return fmt::format("Look at {} first: others waited for {}, and {} waited for nobody.\n",
                     rank_list(waiting.first), one ? "it" : "them", one ? "it" : "they");
}

}  // namespace

WaitingRanks ask_for_collectives(const std::string& run_dir, std::chrono::milliseconds wait) {
  using Clock = std::chrono::steady_clock;
  const std::string folder = run_dir + "/" + kCollectivesFolder, request = random_hex(16);
  make_dirs(real_files(), folder);
  const std::map<std::string, Json> before = files_in(folder);
  const std::string asked = folder + "/" + kCollectivesRequest;
  write_file_atomically(real_files(), asked, request);
  // Someone else may ask at the same time, and ranks answer the newest request alone: every answer that was
  // not there before is one to this look, too.
  std::map<std::string, Json> answers;
  const auto is_new = [&](const std::string& path, const Json& file) {
    const auto old = before.find(path);
    return !request_of(file).empty() && (old == before.end() || request_of(old->second) != request_of(file));
  };
  try {
    for (auto until = Clock::now() + wait; Clock::now() < until;) {
      std::this_thread::sleep_for(kLookForAnswers);
      const size_t earlier = answers.size();
      for (const auto& [path, file] : files_in(folder))
        if (is_new(path, file)) answers[path] = file;
      if (!answers.empty() && std::ssize(answers) >= answers.begin()->second.at("num_ranks").get<int64_t>())
        break;
      if (answers.size() > earlier) until = Clock::now() + wait;
    }
    if (!answers.empty()) {
      std::vector<const Json*> files;
      std::vector<std::string> others;
      for (const auto& [path, file] : answers) files.push_back(&file);
      for (const auto& [path, file] : before)
        if (!answers.contains(path)) others.push_back(path);
      return compared(folder, files, std::move(others));
    }
  } catch (const Json::exception& error) {
    fail_foreign(folder, error);
  }
  std::error_code ignored;
  std::filesystem::remove(asked, ignored);
  fail(ExitCode::kUnusable,
       "[report] no rank of {} answered within {:.0f} s. Rank 0 passes the question on: it is stopped, has "
       "not met the others yet, or cannot reach the folder; a run of one rank does not answer at all",
       run_dir, std::chrono::duration<double>(wait).count());
}

WaitingRanks waiting_ranks(const std::string& run_dir) {
  const std::string folder = run_dir + "/" + kCollectivesFolder;
  const std::map<std::string, Json> files = files_in(folder);
  if (files.empty())
    fail(
        ExitCode::kUnusable,
        "[report] no rank left its last collectives in {}: ranks do so when a run of several of them breaks, "
        "and when `tycho ctl RUN collectives` asks for them",
        folder);
  try {
    const auto time_of = [](const auto& one) { return one.second.at("time").template get<double>(); };
    const auto newest = std::max_element(
        files.begin(), files.end(), [&](const auto& a, const auto& b) { return time_of(a) < time_of(b); });
    std::vector<const Json*> of_one_start;
    std::vector<std::string> others;
    for (const auto& [path, file] : files)
      if (is_of_one_look(file, newest->second))
        of_one_start.push_back(&file);
      else
        others.push_back(path);
    return compared(folder, of_one_start, std::move(others));
  } catch (const std::exception& error) {  // of the parser's types, and of containers
    fail_foreign(folder, error);
  }
}

std::string waiting_text(const WaitingRanks& waiting) {
  std::string text = waiting.folder + "\n";
  for (const RankAtTheEnd& one : waiting.ranks)
    if (one.has_file)
      text += fmt::format("  rank {:<4} {}; {}\n", one.rank, one.doing,
                          one.in.empty() ? "waited in no collective" : "waited in " + one.in);
    else
      text += fmt::format("  rank {:<4} left no file: it was killed or stopped, or cannot write there\n",
                          one.rank);
  for (const OpenCall& call : waiting.calls) {
    text += fmt::format("{} {} of {}{}\n", call.op.empty() ? "call" : call.op, call.number, call.group,
                        call.what.empty() ? "" : " (" + call.what + ")");
    const auto line = [&](const std::vector<int>& ranks, const std::string& what) {
      if (!ranks.empty()) text += fmt::format("  {}: {}\n", what, rank_list(ranks));
    };
    line(call.in_it, fmt::format("in it, for up to {:.1f} s", call.longest_s));
    line(call.done, "done");
    line(call.not_there, "has not called it");
    line(call.unknown, "left no file");
    for (const std::string& one : call.different) text += fmt::format("  different calls: {}\n", one);
  }
  text += conclusion(waiting);
  if (!waiting.ignored.empty())
    text += fmt::format("Left out, of an earlier start or look: {}\n", fmt::join(waiting.ignored, ", "));
  return text;
}

Json waiting_json(const WaitingRanks& waiting) {
  Json ranks = Json::array(), calls = Json::array();
  for (const RankAtTheEnd& one : waiting.ranks)
    ranks.push_back({{"rank", one.rank},
                     {"has_file", one.has_file},
                     {"host", one.host},
                     {"doing", one.doing},
                     {"cause", one.cause},
                     {"in", one.in}});
  for (const OpenCall& one : waiting.calls)
    calls.push_back({{"group", one.group},
                     {"verb", one.op},
                     {"number", one.number},
                     {"what", one.what},
                     {"longest_s", one.longest_s},
                     {"in_it", one.in_it},
                     {"done", one.done},
                     {"not_there", one.not_there},
                     {"unknown", one.unknown},
                     {"different", one.different}});
  return {{"folder", waiting.folder},
          {"ranks", std::move(ranks)},
          {"calls", std::move(calls)},
          {"first", waiting.first},
          {"ignored", waiting.ignored}};
}

}  // namespace tycho
