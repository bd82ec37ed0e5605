// Sets proportions by name, and checks the names against the streams.
#include "trainer/data/loader/mix.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

void check_wanted(const std::vector<StreamConfig>& streams, const Json& wanted) {
  std::vector<std::string> names;
  for (const StreamConfig& stream : streams) names.push_back(stream.name);
  if (names.empty())
    fail(ExitCode::kRecipe, "[data] there is one data set and no streams to mix: write train_data.streams");
  if (!wanted.is_object() || wanted.empty())
    fail(ExitCode::kRecipe, "[data] expected proportions by name, such as {{ {} = 0.2 }}, got {}", names[0],
         wanted.dump());
  for (const auto& [name, value] : wanted.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ExitCode::kRecipe, "[data] no stream is called \"{}\"{}", name, did_you_mean(name, names));
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
      fail(ExitCode::kRecipe, "[data] the proportion of {} must be a number >= 0, got {}", name,
           value.dump());
  }
}

}  // namespace

DataConfig with_mix(DataConfig data, const Mix& mix) {
  if (mix.empty()) return data;
  auto* mds = std::get_if<MdsConfig>(&data.value);
  if (mds == nullptr || mds->streams.size() != mix.size())
    fail(ExitCode::kRecipe,
         "[data] a command mixed {} streams, but {} has others; restore them in the recipe", mix.size(),
         data.place());
  for (StreamConfig& stream : mds->streams) {
    const auto found = mix.find(stream.name);
    if (found == mix.end())
      fail(ExitCode::kRecipe,
           "[data] stream {} is not among those that a command mixed; restore them in the recipe",
           stream.name);
    stream.proportion = found->second;
    stream.repeat.reset();
    stream.choose.reset();
  }
  return data;
}

Mix changed_mix(const DataConfig& data, const Json& wanted) {
  const auto* mds = std::get_if<MdsConfig>(&data.value);
  static const std::vector<StreamConfig> kNone;
  const std::vector<StreamConfig>& streams = mds == nullptr ? kNone : mds->streams;
  check_wanted(streams, wanted);
  Mix mix;
  double named = 0, others = 0;
  for (const StreamConfig& stream : streams) {
    const bool given = wanted.contains(stream.name);
    mix[stream.name] = given ? wanted.at(stream.name).get<double>() : stream.proportion.value_or(0);
    (given ? named : others) += mix[stream.name];
    if (!given && !stream.proportion)
      fail(ExitCode::kRecipe,
           "[data] stream {} has no proportion that it could keep a share of; give the proportions of all "
           "streams",
           stream.name);
  }
  if (wanted.size() < streams.size()) {
    if (named > 1)
      fail(ExitCode::kRecipe,
           "[data] the proportions given add up to {}: give those of all streams, or at most 1 together",
           named);
    if (named < 1 && others == 0)
      fail(ExitCode::kRecipe,
           "[data] the other streams would share {}, but their proportions are 0: give those of all streams",
           1 - named);
    for (auto& [name, proportion] : mix)
      if (!wanted.contains(name)) proportion *= others == 0 ? 0 : (1 - named) / others;
  } else if (named == 0) {
    fail(ExitCode::kRecipe, "[data] the proportions of all streams are 0; write at least one above 0");
  }
  return mix;
}

}  // namespace tycho
