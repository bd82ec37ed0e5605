// Proportions that a command changes.
#include "trainer/data/loader/mix.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

DataConfig mixed(double web, double code, double books) {
  MdsConfig config;
  config.streams = {{.name = "web", .local_dir = "w", .proportion = web},
                    {.name = "code", .local_dir = "c", .proportion = code},
                    {.name = "books", .local_dir = "b", .proportion = books}};
  return {{config}};
}

TEST(MixTest, OtherStreamsShareWhatIsLeft) {
  const Mix mix = changed_mix(mixed(6, 2, 2), {{"code", 0.5}});
  EXPECT_DOUBLE_EQ(mix.at("code"), 0.5);
  EXPECT_DOUBLE_EQ(mix.at("web"), 0.375);
  EXPECT_DOUBLE_EQ(mix.at("books"), 0.125);
  EXPECT_EQ(changed_mix(mixed(1, 1, 1), {{"web", 1}, {"code", 2}, {"books", 0}}),
            (Mix{{"web", 1}, {"code", 2}, {"books", 0}}));
  EXPECT_EQ(changed_mix(mixed(1, 0, 0), {{"web", 1}}), (Mix{{"web", 1}, {"code", 0}, {"books", 0}}));
}

TEST(MixTest, ReplacesEveryWeight) {
  DataConfig data = mixed(1, 1, 1);
  auto& streams = std::get<MdsConfig>(data.value).streams;
  streams[0] = {.name = "web", .local_dir = "w", .repeat = 2};
  streams[1] = {.name = "code", .local_dir = "c", .choose = 3};
  const DataConfig after = with_mix(data, {{"web", 0.2}, {"code", 0.3}, {"books", 0.5}});
  const auto& changed = after.as<MdsConfig>().streams;
  EXPECT_EQ(changed[0].proportion, 0.2);
  EXPECT_EQ(changed[0].repeat, std::nullopt);
  EXPECT_EQ(changed[1].choose, std::nullopt);
  EXPECT_EQ(with_mix(data, {}).as<MdsConfig>().streams[0].repeat, 2);
}

TEST(MixTest, SaysWhatDoesNotFit) {
  const auto refused = [](const DataConfig& data, const Json& wanted, std::string_view part) {
    expect_error(ExitCode::kRecipe, {part}, [&] { changed_mix(data, wanted); });
  };
  const DataConfig data = mixed(1, 1, 1);
  refused({{MdsConfig{.local_dir = "x"}}}, {{"web", 1}}, "no streams to mix");
  refused({{ChatConfig{.path = "x"}}}, {{"web", 1}}, "no streams to mix");
  refused(data, {{"cod", 0.2}}, "no stream is called \"cod\"; did you mean");
  refused(data, Json::array({1, 2}), "expected proportions by name, such as { web = 0.2 }");
  refused(data, Json::object(), "expected proportions by name");
  refused(data, {{"web", -1}}, "must be a number >= 0, got -1");
  refused(data, {{"web", "x"}}, "must be a number >= 0");
  refused(data, {{"web", 0.7}, {"code", 0.4}}, "add up to 1.1");
  refused(data, {{"web", 0}, {"code", 0}, {"books", 0}}, "of all streams are 0");
  refused(mixed(1, 0, 0), {{"web", 0.5}}, "the other streams would share 0.5");
  DataConfig absolute = data;
  std::get<MdsConfig>(absolute.value).streams[2].proportion.reset();
  refused(absolute, {{"web", 0.5}}, "stream books has no proportion");
  expect_error(ExitCode::kRecipe, {"a command mixed 2 streams"}, [&] {
    with_mix(data, {{"web", 1}, {"code", 1}});
  });
  expect_error(ExitCode::kRecipe, {"stream web is not among"}, [&] {
    with_mix(data, {{"a", 1}, {"code", 1}, {"books", 1}});
  });
}

}  // namespace
}  // namespace tycho
