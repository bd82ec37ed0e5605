// tycho ckpt: lists and verifies checkpoints.
#include <fmt/ranges.h>

#include <filesystem>

#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/bytes.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

const VerbSpec kCkptSpec = {
    "ckpt ls RUN\n       tycho ckpt info RUN_OR_CHECKPOINT\n       tycho ckpt verify RUN_OR_CHECKPOINT ...",
    "Lists, describes and verifies checkpoints.",
    "  tycho ckpt ls runs/demo\n  tycho ckpt verify runs/demo  # all of its checkpoints",
    {kJsonOption}};

namespace {

bool wants_json(const Arguments& arguments) { return arguments.has("json"); }

Json summary(const CheckpointInfo& info) {
  return {{"path", info.path},
          {"step", info.step},
          {"epoch", info.epoch},
          {"num_bytes", info.num_bytes},
          {"uuid", info.uuid}};
}

int list(const Arguments& arguments) {
  const std::filesystem::path given = word(arguments, 1, "a run folder");
  no_more_words(arguments, 2);
  if (!std::filesystem::is_directory(given)) fail(ExitCode::kUnusable, "[ckpt] no folder {}", given.string());
  const auto inside = given / "checkpoints";
  std::vector<std::string> broken, unfinished;
  const auto found =
      list_checkpoints(std::filesystem::is_directory(inside) ? inside : given, &broken, &unfinished);
  Json json = {{"checkpoints", Json::array()}, {"broken", broken}, {"unfinished", unfinished}};
  std::vector<std::vector<std::string>> rows = {{"step", "size", "path"}};
  for (const CheckpointInfo& info : found) {
    json["checkpoints"].push_back(summary(info));
    rows.push_back({fmt::to_string(info.step), human_bytes(static_cast<double>(info.num_bytes)), info.path});
  }
  const int code = found.empty() && !broken.empty() ? static_cast<int>(ExitCode::kUnusable) : 0;
  if (wants_json(arguments)) {
    fmt::print("{}\n", json.dump(2));
    return code;
  }
  fmt::print("{}", found.empty() ? "no committed checkpoints\n" : text_table(rows));
  for (const std::string& one : broken) fmt::print("broken: {}\n", one);
  for (const std::string& one : unfinished) fmt::print("unfinished: {}\n", one);
  return code;
}

int info(const Arguments& arguments) {
  const CheckpointReader reader(find_checkpoint(word(arguments, 1, "a run folder or a checkpoint")));
  no_more_words(arguments, 2);
  Json tensors = Json::array();
  std::vector<std::vector<std::string>> rows = {{"tensor", "dtype", "shape", "bytes"}};
  for (const std::string& name : reader.names()) {
    const TensorBytes& tensor = reader.describe(name);
    tensors.push_back(
        {{"name", name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"num_bytes", tensor.num_bytes}});
    rows.push_back({name, tensor.dtype, fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
                    human_bytes(static_cast<double>(tensor.num_bytes))});
  }
  const CheckpointInfo& found = reader.info();
  if (wants_json(arguments)) {
    Json json = summary(found);
    json["tensors"] = tensors;
    json["manifest"] = found.manifest;
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}: step {}, {}\n", found.path, found.step, human_bytes(static_cast<double>(found.num_bytes)));
  const Json kept = found.manifest.value("route", Json::object());
  std::vector<std::string> route;
  for (const auto& [name, value] : kept.items()) route.push_back(name + " " + value.get<std::string>());
  if (!route.empty()) fmt::print("computed by {}\n", fmt::join(route, "; "));
  fmt::print("{}", text_table(rows));
  return 0;
}

/// The checkpoint that a path is, or all of a run; what cannot even be read goes to `broken`.
std::vector<CheckpointInfo> all_checkpoints(const std::string& path, std::vector<std::string>& broken) {
  const std::filesystem::path inside = std::filesystem::path(path) / "checkpoints";
  if (std::filesystem::exists(std::filesystem::path(path) / "COMMIT")) return {find_checkpoint(path)};
  auto found = list_checkpoints(std::filesystem::is_directory(inside) ? inside.string() : path, &broken);
  if (found.empty() && broken.empty()) return {find_checkpoint(path)};  // says what is there instead
  return found;
}

int verify(const Arguments& arguments) {
  word(arguments, 1, "a run folder or checkpoints");
  Json verified = Json::array();
  std::vector<std::string> broken;
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    for (const CheckpointInfo& found : all_checkpoints(arguments.words[i], broken)) {
      try {
        CheckpointReader(found).verify();
      } catch (const Error& error) {
        // A run that goes on may have let it go meanwhile.
        if (std::filesystem::exists(found.path + "/COMMIT")) broken.emplace_back(error.what());
        continue;
      }
      verified.push_back(summary(found));
      if (!wants_json(arguments))
        fmt::print("{}: every byte as written, step {}, {}\n", found.path, found.step,
                   human_bytes(static_cast<double>(found.num_bytes)));
    }
  }
  if (wants_json(arguments)) fmt::print("{}\n", verified.dump(2));
  if (broken.empty()) return 0;
  fail(ExitCode::kUnusable, "[ckpt] {} of {} checkpoints {} damaged:\n  {}", broken.size(),
       broken.size() + verified.size(), broken.size() == 1 ? "is" : "are", fmt::join(broken, "\n  "));
}

}  // namespace

int run_ckpt(const Arguments& arguments) {
  return pick_subverb(arguments, "ckpt", {{"ls", list}, {"info", info}, {"verify", verify}});
}

}  // namespace tycho
