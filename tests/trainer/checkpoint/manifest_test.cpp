// COMMIT round-trips, vouches for itself, and never lets a wrong field through.
#include "trainer/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/base/hash.h"

namespace tycho {
namespace {

Manifest sample() {
  const std::string hash = hash_hex("x");
  Manifest manifest{
      .uuid = std::string(32, 'a'), .epoch = 2, .step = 300, .save_number = 4, .world = world_of_one()};
  manifest.files = {{"rank-00000.safetensors", 20'000'000, hash, {hash, hash}}, {"empty", 0, hash, {}}};
  manifest.tensors = {{"w", "F32", {4, 3}, {{"rank-00000.safetensors", 4096, 48, {{0, 4}, {0, 3}}}}},
                      {"s", "BF16", {}, {{"rank-00000.safetensors", 4144, 2, {}}}}};
  manifest.train_state = {{"step", 300}};
  manifest.recipe = {{"lr", 0.1}};
  manifest.recipe_hash = "h";
  return manifest;
}

/// The text of changed JSON with the hash that fits it.
std::string sealed(const Json& json) {
  const std::string rest = "\"," + canonical_json(json).substr(1) + "\n";
  return "{\"hash\":\"" + hash_hex(rest) + rest;
}

TEST(Manifest, RoundTrips) {
  const std::string text = manifest_text(sample());
  EXPECT_EQ(manifest_text(parse_manifest(text, "COMMIT")), text);
  const Json json = parse_json(text, "COMMIT");
  EXPECT_EQ(json["step"], 300);
  EXPECT_EQ(json["save_number"], 4);
  EXPECT_EQ(json["world"]["mesh"]["dp_shard"], 1);
  EXPECT_EQ(json["tensors"][0]["pieces"][0].dump(), R"(["rank-00000.safetensors",4096,48,[[0,4],[0,3]]])");
  EXPECT_EQ(json["files"][0]["blocks"].size(), 2u);
  EXPECT_EQ(sealed(manifest_json(sample())), text);
}

TEST(Manifest, KeepsItsRouteAndOlderOnesHaveNone) {
  Manifest manifest = sample();
  EXPECT_TRUE(parse_manifest(manifest_text(manifest), "COMMIT").route.is_null());
  EXPECT_FALSE(manifest_json(manifest).contains("route"));
  manifest.route = {{"kernels", "cpu avx2"}, {"products", "fp32"}};
  EXPECT_EQ(parse_manifest(manifest_text(manifest), "COMMIT").route, manifest.route);
}

TEST(Manifest, HoldsLargeTables) {
  Manifest manifest = sample();
  manifest.tensors.clear();
  for (int i = 0; i < 20000; ++i) {
    manifest.tensors.push_back(
        {"model.layers." + std::to_string(i), "F32", {2}, {{"rank-00000.safetensors", i * 8, 8, {{0, 2}}}}});
  }
  const std::string text = manifest_text(manifest);
  EXPECT_EQ(parse_manifest(text, "COMMIT").tensors.size(), 20000u);
}

TEST(Manifest, RefusesEveryWrongField) {
  using Change = std::function<void(Json&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"'format'", [](Json& j) { j["format"] = "other"; }},
      {"use a newer Tycho", [](Json& j) { j["version"] = 2; }},
      {"'block_bytes'", [](Json& j) { j["block_bytes"] = 4096; }},
      {"'uuid'", [](Json& j) { j["uuid"] = "../../../../etc"; }},
      {"'step'", [](Json& j) { j["step"] = -1; }},
      {"'step'", [](Json& j) { j["step"] = 1.5; }},
      {"'step'", [](Json& j) { j["step"] = 18446744073709551615u; }},
      {"'epoch'", [](Json& j) { j.erase("epoch"); }},
      {"'save_number'", [](Json& j) { j["save_number"] = -1; }},
      {"'save_number'", [](Json& j) { j["save_number"] = "4"; }},
      {"'route'", [](Json& j) { j["route"] = "cpu avx2"; }},
      {"'route'",
       [](Json& j) {
         j["route"] = {{"threads", 2}};
       }},
      {"'files'", [](Json& j) { j["files"] = Json::object(); }},
      {"'an object'", [](Json& j) { j["files"][0] = 3; }},
      {"'name'", [](Json& j) { j["files"][0]["name"] = "../weights"; }},
      {"'name'", [](Json& j) { j["files"][0]["name"] = "COMMIT"; }},
      {"'name'", [](Json& j) { j["files"][0]["name"] = std::string("a\0b", 3); }},
      {"'files'", [](Json& j) { j["files"].push_back(j["files"][0]); }},
      {"'xxh3_128'", [](Json& j) { j["files"][0]["xxh3_128"] = "00"; }},
      {"'blocks'", [](Json& j) { j["files"][0]["blocks"].erase(0); }},
      {"'blocks'", [](Json& j) { j["files"][0]["blocks"][0] = 7; }},
      {"'blocks'", [](Json& j) { j["files"][0]["num_bytes"] = 9223372036854775807; }},
      {"unknown dtype", [](Json& j) { j["tensors"][0]["dtype"] = "F33"; }},
      {"out of range",
       [](Json& j) {
         j["tensors"][0]["shape"] = {4294967296, 4294967296};
       }},
      {"'shape'",
       [](Json& j) {
         j["tensors"][0]["shape"] = {-4, -3};
       }},
      {"'tensors'", [](Json& j) { j["tensors"][1]["name"] = "w"; }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"] = Json::array(); }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"].push_back(j["tensors"][0]["pieces"][0]); }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"][0][0] = "elsewhere"; }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"][0][1] = 19'999'999; }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"][0][1] = 9223372036854775807; }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"][0][2] = 47; }},
      {"'pieces'", [](Json& j) { j["tensors"][0]["pieces"][0][3] = Json::array(); }},
      {"'pieces'",
       [](Json& j) {
         j["tensors"][0]["pieces"][0][3][0] = {0, 5};
       }},
      {"'pieces'",
       [](Json& j) {
         j["tensors"][0]["pieces"][0][3][0] = {3, 2};
       }},
  };
  for (const auto& [expected, change] : changes) {
    Json json = manifest_json(sample());
    change(json);
    const Failure failure = failure_of([&] { parse_manifest(sealed(json), "run/COMMIT"); });
    EXPECT_EQ(failure.code, ExitCode::kUnusable) << expected << ": " << json.dump();
    EXPECT_TRUE(failure.says(expected) && failure.says("run/COMMIT")) << expected << ": " << failure.message;
  }
}

TEST(Manifest, DamagedTextIsAnError) {
  const std::string good = manifest_text(sample());
  std::mt19937 random(3);
  for (int trial = 0; trial < 5000; ++trial) {
    std::string bad = good;
    const size_t at = random() % bad.size();
    if (trial % 3 == 0) {
      bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    } else if (trial % 3 == 1) {
      bad.resize(at);
    } else {
      bad.insert(at, 1, static_cast<char>(random()));
    }
    EXPECT_EQ(failure_of([&] { parse_manifest(bad, "COMMIT"); }).code, ExitCode::kUnusable) << at;
  }
}

TEST(Manifest, MutatedFieldsBehindARightHashNeverCrash) {
  const std::string body = canonical_json(manifest_json(sample())).substr(1);
  std::mt19937 random(4);
  int refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bad = body;
    for (int i = 0; i < 3; ++i) bad[random() % bad.size()] = "0123456789[]{},:\"-e.atn"[random() % 23];
    const std::string rest = "\"," + bad + "\n";
    const Failure failure =
        failure_of([&] { parse_manifest("{\"hash\":\"" + hash_hex(rest) + rest, "COMMIT"); });
    EXPECT_TRUE(failure.code == ExitCode::kOk || failure.code == ExitCode::kUnusable) << failure.message;
    refused += failure.code == ExitCode::kUnusable;
  }
  EXPECT_GT(refused, 15000);
}

}  // namespace
}  // namespace tycho
