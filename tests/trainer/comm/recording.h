// A communicator that records what a rank calls, and checks of what all ranks recorded.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/comm/communicator.h"

namespace tycho {

struct RecordedCall {
  std::string op;
  std::string group;       // "world", "world/0.1": the split and its colour
  std::vector<int> ranks;  // of the group, by their ranks in the world
  int64_t num_bytes = 0;
  int peer = -1;  // in the world: the root of a broadcast, or whom a message goes to or comes from
  bool operator==(const RecordedCall&) const = default;
};
using Schedule = std::vector<RecordedCall>;

inline std::string text_of(const RecordedCall& call) {
  const std::string peer = call.peer < 0 ? "" : fmt::format(" with rank {}", call.peer);
  return fmt::format("{} of {} bytes{} in {}", call.op, call.num_bytes, peer, call.group);
}

/// What is wrong with the schedules of all ranks, "" for nothing: the members of a group call its collectives
/// in one order, and every send has its receive.
inline std::string first_fault(const std::vector<Schedule>& by_rank) {
  std::map<std::string, std::pair<int, Schedule>> collectives;  // group: the first rank of it, and its calls
  std::map<std::tuple<std::string, int, int>, std::vector<int64_t>> sent, received;  // group, from, to: bytes
  const auto number_of = [](size_t r) { return static_cast<int>(r); };
  for (size_t r = 0; r < by_rank.size(); ++r) {
    std::map<std::string, Schedule> own;
    for (const RecordedCall& call : by_rank[r]) {
      if (std::find(call.ranks.begin(), call.ranks.end(), number_of(r)) == call.ranks.end())
        return fmt::format("rank {} calls {}, which has the ranks {}", r, text_of(call),
                           fmt::join(call.ranks, ", "));
      if (call.op == "send")
        sent[{call.group, number_of(r), call.peer}].push_back(call.num_bytes);
      else if (call.op == "recv")
        received[{call.group, call.peer, number_of(r)}].push_back(call.num_bytes);
      else
        own[call.group].push_back(call);
    }
    for (const auto& [group, calls] : own) {
      const auto& [first, wanted] = collectives.try_emplace(group, number_of(r), calls).first->second;
      for (size_t i = 0; i < std::max(calls.size(), wanted.size()); ++i) {
        const std::string theirs = i < wanted.size() ? text_of(wanted[i]) : "nothing more";
        const std::string mine = i < calls.size() ? text_of(calls[i]) : "nothing more";
        if (i >= calls.size() || i >= wanted.size() || !(calls[i] == wanted[i]))
          return fmt::format("call {} of {}: rank {} calls {}, rank {} calls {}", i, group, first, theirs, r,
                             mine);
      }
    }
  }
  for (const auto& [group, first] : collectives)
    for (const int member : first.second.front().ranks) {
      const auto& calls = by_rank.at(static_cast<size_t>(member));
      const auto is_there = [&, name = group](const RecordedCall& call) { return call.group == name; };
      if (std::none_of(calls.begin(), calls.end(), is_there))
        return fmt::format("rank {} calls nothing in {}, rank {} does", member, group, first.first);
    }
  for (const auto* side : {&sent, &received})
    for (const auto& [way, bytes] : *side)
      if (sent[way] != received[way])
        return fmt::format("in {} rank {} sends rank {} messages of {} bytes, which receives {}",
                           std::get<0>(way), std::get<1>(way), std::get<2>(way), sent[way], received[way]);
  return "";
}

/// Passes everything on to `inner` and writes it down; groups that are split from it write to the same
/// schedule. A collective that runs in the background is recorded where it starts.
class RecordingCommunicator final : public Communicator {
 public:
  /// `inner` and `schedule` outlive it.
  RecordingCommunicator(Communicator& inner, Schedule& schedule)
      : RecordingCommunicator(&inner, nullptr, schedule, "world", {}) {
    for (int r = 0; r < inner.size(); ++r) ranks_.push_back(r);
  }
  RecordingCommunicator(std::unique_ptr<Communicator> inner, Schedule& schedule)
      : RecordingCommunicator(*inner, schedule) {
    own_ = std::move(inner);
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void all_reduce(Tensor& x) override { note("all_reduce", x), inner_->all_reduce(x); }
  void all_gather(Tensor& out, const Tensor& in) override {
    note("all_gather", in), inner_->all_gather(out, in);
  }
  void reduce_scatter(Tensor& out, const Tensor& in) override {
    note("reduce_scatter", out);
    inner_->reduce_scatter(out, in);
  }
  void broadcast(Tensor& x, int root) override { note("broadcast", x, root), inner_->broadcast(x, root); }
  void barrier() override {
    schedule_.push_back({"barrier", name_, ranks_});
    inner_->barrier();
  }
  void send(const Tensor& x, int to) override { note("send", x, to), inner_->send(x, to); }
  void recv(Tensor& x, int from) override { note("recv", x, from), inner_->recv(x, from); }
  std::vector<std::unique_ptr<Pending>> start_together(const std::vector<GroupedCall>& calls) override {
    for (const GroupedCall& call : calls) switch (call.op) {
        case GroupedCall::Op::kAllReduce: note("all_reduce", call.out); break;
        case GroupedCall::Op::kAllGather: note("all_gather", call.in); break;
        case GroupedCall::Op::kReduceScatter: note("reduce_scatter", call.out); break;
        case GroupedCall::Op::kSend: note("send", call.in, call.peer); break;
        case GroupedCall::Op::kRecv: note("recv", call.out, call.peer); break;
      }
    return inner_->start_together(calls);
  }
  void connect_pairs(const std::vector<std::pair<int, int>>& pairs) override { inner_->connect_pairs(pairs); }
  std::shared_ptr<void> registered(const Tensor& x) override { return inner_->registered(x); }
  std::unique_ptr<Communicator> split(int colour, int key) override {
    schedule_.push_back({"split", name_, ranks_});
    std::unique_ptr<Communicator> group = inner_->split(colour, key);
    const int own = ranks_[static_cast<size_t>(rank())];
    Tensor members = at::zeros({group->size()}, at::kInt);
    group->all_gather(members, at::full({1}, own, at::kInt));
    const int* first = members.data_ptr<int>();
    Communicator* inner = group.get();
    return std::unique_ptr<Communicator>(new RecordingCommunicator(
        inner, std::move(group), schedule_, fmt::format("{}/{}.{}", name_, num_splits_++, colour),
        {first, first + members.numel()}));
  }
  Error abort(const Error& error) override { return inner_->abort(error); }
  void check() override { inner_->check(); }
  bool is_broken() override { return inner_->is_broken(); }
  Error why_broken(const std::string& what) override { return inner_->why_broken(what); }
  NotedGroup noted() const override { return inner_->noted(); }
  void keep_collectives_in(const std::string& folder) override { inner_->keep_collectives_in(folder); }

 private:
  RecordingCommunicator(Communicator* inner, std::unique_ptr<Communicator> own, Schedule& schedule,
                        std::string name, std::vector<int> ranks)
      : own_(std::move(own)),
        inner_(inner),
        schedule_(schedule),
        name_(std::move(name)),
        ranks_(std::move(ranks)) {}

  void note(const char* op, const Tensor& x, int peer = -1) {
    schedule_.push_back({op, name_, ranks_, static_cast<int64_t>(x.nbytes()),
                         peer < 0 ? -1 : ranks_.at(static_cast<size_t>(peer))});
  }

  std::unique_ptr<Communicator> own_;
  Communicator* inner_;
  Schedule& schedule_;
  std::string name_;
  std::vector<int> ranks_;
  int num_splits_ = 0;
};

}  // namespace tycho
