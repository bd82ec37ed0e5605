// Gathers checksums by name and reports the first that differs.
#include "trainer/loop/replica_check.h"

#include <algorithm>

#include "trainer/base/hash.h"
#include "trainer/base/json_writer.h"
#include "trainer/parallel/gather_texts.h"
#include "trainer/restore/unit_tensors.h"

namespace tycho {
namespace {

std::string checksum(const Tensor& host, const Extent& extent) {
  const auto bytes = static_cast<int64_t>(host.element_size());
  const auto* data = static_cast<const char*>(host.data_ptr());
  return hash_hex({data + extent.begin * bytes, static_cast<size_t>((extent.end - extent.begin) * bytes)});
}

void add(RankFacts& facts, const std::string& prefix, const FlatState& state) {
  const Tensor host = state.flat.cpu();
  for (const Extent& extent : *state.extents)
    facts.emplace_back(prefix + state_name(state.buffer, extent.spec->name), checksum(host, extent));
}

std::string text_of(const RankFacts& facts) {
  Json json = Json::array();
  for (const auto& [name, value] : facts) json.push_back({name, value});
  return json.dump();
}

RankFacts facts_of(const std::string& text) {
  RankFacts facts;
  for (const Json& one : parse_json(text, "another rank")) facts.emplace_back(one.at(0), one.at(1));
  return facts;
}

[[noreturn]] void fail_at_difference(const RankFacts& first, const RankFacts& other, size_t rank,
                                     int64_t step) {
  size_t at = 0, count = 0;
  for (size_t i = std::min(first.size(), other.size()); i-- > 0;)
    if (first[i] != other[i]) at = i, ++count;
  if (first.size() != other.size())
    fail(ExitCode::kTopology, "[paranoid] after step {} rank 0 has {} items to compare, but rank {} has {}",
         step, first.size(), rank, other.size());
  fail(ExitCode::kTopology,
       "[paranoid] after step {} replicas have diverged: {} is {} on rank 0 and {} on rank {}{}. Nothing was "
       "saved since; check the machine of rank {}, then resume from a checkpoint",
       step, first[at].first, first[at].second, other[at].second, rank,
       count > 1 ? fmt::format(", and {} more differ", count - 1) : "", rank);
}

}  // namespace

RankFacts state_facts(const TrainState& state, const TrainConfig& now, double lr) {
  const auto text = [](const Json& json) { return json.dump(); };
  RankFacts facts = {{"step", text(state.step)},
                     {"tokens", text(state.tokens)},
                     {"samples", text(state.samples)},
                     {"data.epoch", text(state.data.epoch)},
                     {"data.sample", text(state.data.sample)},
                     {"skipped", text(state.skipped)},
                     {"lr", text(lr)},
                     {"clip.norm", text(now.clip.norm)}};
  const Json optimizer = to_json(now.optimizer);  // betas, weight_decay
  for (const auto& [key, value] : optimizer.items()) facts.emplace_back("optimizer." + key, text(value));
  facts.emplace_back("commands", text(state.controls.to_json()));
  return facts;
}

RankFacts tensor_facts(const std::vector<OwnedRange>& ranges, Optimizer& optimizer) {
  RankFacts facts;
  for (const FlatState& state : flat_states(ranges, &optimizer)) add(facts, "", state);
  for (const OwnedRange& range : ranges)  // what the model computes with, where that is another buffer
    if (range.has_own_master()) add(facts, "rounded ", {"", &range.extents, range.params});
  return facts;
}

void require_same_facts(Communicator& world, const RankFacts& mine, int64_t step) {
  const std::string text = text_of(mine);
  const std::vector<std::string> hashes = gather_texts(world, hash_hex(text));
  const auto other =
      std::find_if(hashes.begin(), hashes.end(), [&](const auto& h) { return h != hashes[0]; });
  if (other == hashes.end()) return;
  const std::vector<std::string> all = gather_texts(world, text);
  const auto rank = static_cast<size_t>(other - hashes.begin());
  fail_at_difference(facts_of(all[0]), facts_of(all[rank]), rank, step);
}

}  // namespace tycho
