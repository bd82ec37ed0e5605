// Gathers checksums by name and reports the first that differs.
#include "trainer/train/replica_check.h"

#include <algorithm>

#include "trainer/base/hash.h"
#include "trainer/base/json_writer.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/saving/unit_tensors.h"

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

/// The facts of a rank, and its number.
struct Said {
  RankFacts facts;
  size_t rank;
};

[[noreturn]] void fail_at_difference(const Said& first, const Said& other, int64_t step) {
  size_t at = 0, count = 0;
  for (size_t i = std::min(first.facts.size(), other.facts.size()); i-- > 0;)
    if (first.facts[i] != other.facts[i]) at = i, ++count;
  if (first.facts.size() != other.facts.size())
    fail(ExitCode::kTopology, "[paranoid] after step {} rank {} has {} items to compare, but rank {} has {}",
         step, first.rank, first.facts.size(), other.rank, other.facts.size());
  fail(
      ExitCode::kTopology,
      "[paranoid] after step {} replicas have diverged: {} is {} on rank {} and {} on rank {}{}. Nothing was "
      "saved since; check the machine of rank {}, then resume from a checkpoint",
      step, first.facts[at].first, first.facts[at].second, first.rank, other.facts[at].second, other.rank,
      count > 1 ? fmt::format(", and {} more differ", count - 1) : "", other.rank);
}

/// Returns the first rank that owns the same piece as rank r; each string begins with the piece.
size_t first_alike(const std::vector<std::string>& hashes, size_t r) {
  const auto piece = [&](size_t i) { return hashes[i].substr(0, hashes[i].find(' ')); };
  size_t first = 0;
  while (piece(first) != piece(r)) ++first;
  return first;
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

RankFacts tensor_facts(const std::vector<OwnedRange>& ranges, Optimizer& optimizer, WeightAverage* average) {
  RankFacts facts;
  for (const FlatState& state : flat_states(ranges, &optimizer, average)) add(facts, "", state);
  for (const OwnedRange& range : ranges)  // what the model computes with, where that is another buffer
    if (range.has_own_master()) add(facts, "rounded ", {"", &range.extents, range.params});
  return facts;
}

void require_same_facts(Communicator& world, const RankFacts& mine, int64_t step, int piece) {
  const std::string text = text_of(mine);
  const std::vector<std::string> hashes =
      all_gather_strings(world, fmt::format("{} {}", piece, hash_hex(text)));
  for (size_t r = 0; r < hashes.size(); ++r) {
    const size_t first = first_alike(hashes, r);
    if (hashes[r] == hashes[first]) continue;
    const std::vector<std::string> all = all_gather_strings(world, text);
    fail_at_difference({facts_of(all[first]), first}, {facts_of(all[r]), r}, step);
  }
}

}  // namespace tycho
