// A message about a rank names its machine and process, and what it did last.
#include "trainer/rendezvous/meet/roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace tycho {

void Roster::add(Member member) {
  const int rank = member.rank;
  members_[rank] = std::move(member);
}

const Member* Roster::find(int rank) const {
  const auto found = members_.find(rank);
  return found == members_.end() ? nullptr : &found->second;
}

std::vector<int> Roster::missing() const {
  std::vector<int> ranks;
  for (int r = 0; r < num_ranks_; ++r)
    if (!members_.contains(r)) ranks.push_back(r);
  return ranks;
}

bool Roster::hangs(double seconds) const {
  return std::any_of(reports_.begin(), reports_.end(), [&](const auto& one) {
    return !has_ended(one.first) && one.second.collective_s >= seconds;
  });
}

std::vector<int> Roster::ended(const std::vector<int>& ranks) const {
  std::vector<int> found;
  for (const auto& one : ended_)
    if (ranks.empty() || std::find(ranks.begin(), ranks.end(), one.first) != ranks.end())
      found.push_back(one.first);
  return found;
}

bool Roster::has_one_ended_for(double seconds) const {
  return std::any_of(ended_.begin(), ended_.end(), [&](const auto& one) {
    return Clock::now() - one.second > std::chrono::duration<double>(seconds);
  });
}

std::string Roster::describe(int rank) const {
  const Member* member = find(rank);
  if (member == nullptr) return fmt::format("rank {}", rank);
  const auto report = reports_.find(rank);
  return fmt::format("rank {} ({}, pid {}{})", rank, member->host, member->pid,
                     report == reports_.end() ? "" : "; " + progress_text(report->second));
}

std::string Roster::describe(const std::vector<int>& ranks) const {
  constexpr size_t kShown = 8;  // a machine's
  std::string text = ranks.empty() ? "a rank" : "";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + describe(ranks[i]);
  if (ranks.size() > kShown) text += fmt::format(" and {} more", ranks.size() - kShown);
  return text;
}

Cause Roster::unreachable(const std::vector<int>& ranks, const std::string& what) const {
  if (const std::vector<int> gone_well = ended(ranks); !gone_well.empty())
    return gone(gone_well, "has ended, but others still need it");
  return gone(ranks, "has ended or does not answer: " + what.substr(0, what.find('\n')));
}

Cause Roster::gone(const std::vector<int>& ranks, const std::string& how) const {
  return {ranks.empty() ? 0 : ranks.front(), ExitCode::kTerminated,
          fmt::format("[parallel] {} {}. The same command resumes from the newest checkpoint",
                      describe(ranks), how)};
}

}  // namespace tycho
