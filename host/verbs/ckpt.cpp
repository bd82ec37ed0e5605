// tycho ckpt: lists, verifies, compares and rewrites checkpoints.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/bytes.h"
#include "trainer/base/folder_draft.h"
#include "trainer/buckets/open_bucket.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/compare.h"
#include "trainer/checkpoint/fetched_checkpoint.h"
#include "trainer/checkpoint/listing.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/remote_checkpoints.h"
#include "trainer/checkpoint/reshard.h"
#include "trainer/metrics/format.h"
#include "trainer/recipe/ckpt.h"
#include "trainer/recipe/config_io.h"

namespace tycho {

const VerbSpec kCkptSpec = {
    "ckpt ls RUN\n       tycho ckpt get PLACE FOLDER\n       tycho ckpt info RUN_OR_CHECKPOINT\n       tycho "
    "ckpt verify RUN_OR_CHECKPOINT ...\n"
    "       tycho ckpt diff A B\n       tycho ckpt reshard RUN_OR_CHECKPOINT --out FOLDER [--files N]",
    "Lists, fetches, describes, verifies, compares and reshards checkpoints. diff: exit status 0: no "
    "difference, 1: "
    "some.",
    "  tycho ckpt ls runs/demo\n"
    "  tycho ckpt ls s3://bucket/demo  # in a store of objects; other commands take such places, too\n"
    "  tycho ckpt get s3://bucket/demo here  # the newest one; the same command goes on after a kill\n"
    "  tycho ckpt verify runs/demo  # all of its checkpoints\n"
    "  tycho ckpt diff runs/demo runs/demo-2\n"
    "  tycho ckpt reshard runs/demo --out one-file  # whole tensors, whatever the ranks wrote",
    {{"out", "For reshard: a new or empty folder, in which the copy is written.", "FOLDER"},
     {"files", "For reshard: the number of files, all of the same size.", "N", "1"},
     kJsonOption}};

namespace {

bool wants_json(const Arguments& arguments) { return arguments.has("json"); }

Json summary(const CheckpointInfo& info) {
  return {{"path", info.path},   {"step", info.step},
          {"epoch", info.epoch}, {"num_bytes", info.num_bytes},
          {"uuid", info.uuid},   {"tag", info.tag.empty() ? Json(nullptr) : Json(info.tag)}};
}

/// Returns the checkpoints of a run, in a folder or in a store of objects.
std::vector<CheckpointInfo> list_at(const std::string& given, std::vector<std::string>& broken,
                                    std::vector<std::string>& unfinished) {
  if (is_place_of_store(given)) return list_remote_checkpoints(given, &broken, &unfinished);
  if (!std::filesystem::is_directory(given)) fail(ExitCode::kUnusable, "[ckpt] no folder {}", given);
  const std::string inside = given + "/checkpoints";
  return list_checkpoints(std::filesystem::is_directory(inside) ? inside : given, &broken, &unfinished);
}

/// The store of a run, as far as it answers.
struct RunStore {
  std::string place;                                  // ckpt.remote; "" without one
  std::map<std::string, CheckpointInfo> checkpoints;  // by uuid
  std::string problem;                                // why it is not known what is there
};

/// Returns what the store of a run in a folder of this machine has.
RunStore store_of_run(const std::string& given, const std::vector<CheckpointInfo>& local) {
  RunStore store;
  Json recipe;
  if (const std::string path = given + "/recipe.json"; std::filesystem::exists(path))
    recipe = parse_json(read_file(path), path);
  else if (!local.empty())
    recipe = local.front().manifest.value("recipe", Json::object());
  const auto text = [&](const char* pointer) {
    return recipe.is_object() ? recipe.value(Json::json_pointer(pointer), Json()) : Json();
  };
  const Json remote = text("/ckpt/remote"), name = text("/run_name");
  if (!remote.is_string() || !name.is_string() || remote.get<std::string>().empty()) return store;
  CheckpointConfig config;
  config.remote = remote.get<std::string>();
  store.place = remote_place(config, name.get<std::string>());
  try {
    RemoteCheckpoints there(open_bucket(parse_remote(store.place), {.retries = 1, .stall_s = 10}),
                            store.place);
    for (const CheckpointInfo& info : there.list()) store.checkpoints.emplace(info.uuid, info);
  } catch (const Error& error) {
    store.problem = error.what();
  }
  return store;
}

int list(const Arguments& arguments) {
  const std::string given = word(arguments, 1, "a run folder");
  no_more_words(arguments, 2);
  std::vector<std::string> broken, unfinished;
  std::vector<CheckpointInfo> found = list_at(given, broken, unfinished);
  const RunStore store = is_place_of_store(given) ? RunStore() : store_of_run(given, found);
  for (const auto& [uuid, info] : store.checkpoints)
    if (std::none_of(found.begin(), found.end(),
                     [&, wanted = uuid](const CheckpointInfo& one) { return one.uuid == wanted; }))
      found.push_back(info);
  sort_newest_first(found);
  Json json = {{"checkpoints", Json::array()}, {"broken", broken}, {"unfinished", unfinished}};
  if (!store.place.empty()) json["remote"] = store.place;
  const bool has_tags =
      std::any_of(found.begin(), found.end(), [](const CheckpointInfo& info) { return !info.tag.empty(); });
  std::vector<std::vector<std::string>> rows = {{"step", "size"}};
  if (has_tags) rows[0].emplace_back("tag");
  if (!store.place.empty()) rows[0].emplace_back("remote");
  rows[0].emplace_back("path");
  for (const CheckpointInfo& info : found) {
    json["checkpoints"].push_back(summary(info));
    rows.push_back({fmt::to_string(info.step), human_bytes(static_cast<double>(info.num_bytes))});
    if (has_tags) rows.back().push_back(info.tag.empty() ? "-" : printable(info.tag, true));
    if (!store.place.empty()) {
      const bool is_there = store.checkpoints.contains(info.uuid), is_known = store.problem.empty();
      rows.back().emplace_back(!is_known ? "?" : !is_there ? "no" : info.read ? "only" : "yes");
      json["checkpoints"].back()["is_in_remote"] = is_known ? Json(is_there) : Json(nullptr);
    }
    rows.back().push_back(info.path);
  }
  const int code = found.empty() && !broken.empty() ? static_cast<int>(ExitCode::kUnusable) : 0;
  if (wants_json(arguments)) {
    fmt::print("{}\n", json.dump(2));
    return code;
  }
  fmt::print("{}", found.empty() ? "no committed checkpoints\n" : text_table(rows));
  for (const std::string& one : broken) fmt::print("broken: {}\n", one);
  for (const std::string& one : unfinished) fmt::print("unfinished: {}\n", one);
  if (!store.problem.empty()) fmt::print("remote: {}\n", store.problem);
  return code;
}

int get(const Arguments& arguments) {
  const std::string place = word(arguments, 1, "a place such as s3://bucket/run");
  const std::string out = word(arguments, 2, "a folder for the copy");
  no_more_words(arguments, 3);
  if (!is_place_of_store(place))
    fail(ExitCode::kUsage,
         "[ckpt] expected a place such as s3://bucket/run, got {}: folders are copied with cp -r", place);
  const CheckpointInfo found = find_checkpoint(place);
  const CheckpointInfo copy = fetch_checkpoint(found, real_files(), out, [&](const FetchedFile& file) {
    if (wants_json(arguments)) return;
    const std::string size = human_bytes(static_cast<double>(file.num_bytes));
    const int64_t kept = file.num_bytes - file.num_fetched;
    const std::string note =
        kept == 0 ? "" : fmt::format(", {} of it was here", human_bytes(static_cast<double>(kept)));
    fmt::print(stderr, "{}: {}{}\n", file.name, size, note);
  });
  if (wants_json(arguments))
    fmt::print("{}\n", summary(copy).dump(2));
  else
    fmt::print("{}: every byte as written, step {}, {}\n", copy.path, copy.step,
               human_bytes(static_cast<double>(copy.num_bytes)));
  return 0;
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

/// Returns the checkpoint at a path, or all checkpoints of a run. Adds unreadable ones to `broken`.
std::vector<CheckpointInfo> all_checkpoints(const std::string& path, std::vector<std::string>& broken) {
  if (is_place_of_store(path)) return list_remote_checkpoints(path, &broken);
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
        if (found.read || std::filesystem::exists(found.path + "/COMMIT")) broken.emplace_back(error.what());
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

/// Returns the names of small files beside the shards that differ in their hashes.
std::vector<std::string> files_that_differ(const CheckpointInfo& a, const CheckpointInfo& b) {
  std::map<std::string, std::string> in_a, in_b;
  for (const auto& [info, hashes] : {std::pair(&a, &in_a), std::pair(&b, &in_b)})
    for (const FileRecord& file : manifest_from_json(info->manifest, info->path).files)
      if (!file.name.ends_with(".safetensors")) (*hashes)[file.name] = file.hash;
  std::vector<std::string> names;
  for (const auto& [name, hash] : in_a)
    if (const auto found = in_b.find(name); found == in_b.end() || found->second != hash)
      names.push_back(name);
  for (const auto& [name, hash] : in_b)
    if (!in_a.contains(name)) names.push_back(name);
  return names;
}

std::string difference_text(const TensorDifference& one) {
  if (one.a.empty()) return "only in B: " + one.b;
  if (one.b.empty()) return "only in A: " + one.a;
  if (one.a != one.b) return fmt::format("{} in A, {} in B", one.a, one.b);
  const std::string count = fmt::format("{} of {} elements differ", one.num_different, one.num_elements);
  return one.max_difference ? fmt::format("{}, by at most {:.3g}", count, *one.max_difference) : count;
}

Json difference_json(const TensorDifference& one) {
  const auto type = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return {{"name", one.name},
          {"a", type(one.a)},
          {"b", type(one.b)},
          {"num_elements", one.num_elements},
          {"num_different", one.num_different},
          {"max_difference", one.max_difference ? Json(*one.max_difference) : Json(nullptr)}};
}

/// Returns a part of the manifest without numbers that follow from the rest.
Json part_of(const CheckpointInfo& info, const char* part) {
  Json json = info.manifest.value(part, Json::object());
  if (json.contains("data") && json.at("data").is_object()) json["data"].erase("order_marks");
  return json;
}

int diff(const Arguments& arguments) {
  const CheckpointReader a(find_checkpoint(word(arguments, 1, "two runs or checkpoints")));
  const CheckpointReader b(find_checkpoint(word(arguments, 2, "a second run or checkpoint")));
  no_more_words(arguments, 3);
  const TensorComparison tensors = compare_tensors(a, b);
  const std::vector<std::string> files = files_that_differ(a.info(), b.info());
  Json json = {{"a", summary(a.info())},   {"b", summary(b.info())}, {"equal_tensors", tensors.num_equal},
               {"tensors", Json::array()}, {"files", files},         {"train_state", Json::array()},
               {"recipe", Json::array()}};
  std::vector<std::vector<std::string>> rows;
  for (const TensorDifference& one : tensors.differences) {
    json["tensors"].push_back(difference_json(one));
    rows.push_back({one.name, difference_text(one)});
  }
  for (const std::string& name : files) rows.push_back({name, "the files differ"});
  for (const char* part : {"train_state", "recipe"}) {
    for (const ConfigDifference& one : diff_configs(part_of(a.info(), part), part_of(b.info(), part))) {
      const auto shown = [](const std::string& value) { return value.empty() ? "(none)" : value; };
      json[part].push_back({{"key", one.path}, {"a", one.old_value}, {"b", one.new_value}});
      rows.push_back({fmt::format("{}.{}", part, one.path),
                      fmt::format("{} -> {}", shown(one.old_value), shown(one.new_value))});
    }
  }
  if (wants_json(arguments)) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("A  {}\nB  {}\n{} tensors are equal, {} differ\n", a.info().path, b.info().path,
               tensors.num_equal, tensors.differences.size());
    if (!rows.empty()) fmt::print("{}", text_table(rows));
  }
  return rows.empty() ? 0 : 1;
}

int reshard_copy(const Arguments& arguments) {
  const CheckpointReader from(find_checkpoint(word(arguments, 1, "a run folder or a checkpoint")));
  no_more_words(arguments, 2);
  const std::string out = arguments.text("out");
  const auto num_files = static_cast<int>(arguments.integer("files", 1, 100'000));
  if (!is_free_for_draft(out))
    fail(ExitCode::kFolderOwned, "[ckpt] {} is not an empty folder; name a new one for the copy", out);
  const CheckpointInfo copy = reshard(from, real_files(), out, num_files);
  if (wants_json(arguments))
    fmt::print("{}\n", summary(copy).dump(2));
  else
    fmt::print("{}: step {}, {} in {} file{}\n", copy.path, copy.step,
               human_bytes(static_cast<double>(copy.num_bytes)), num_files, num_files == 1 ? "" : "s");
  return 0;
}

}  // namespace

int run_ckpt(const Arguments& arguments) {
  return pick_subverb(arguments, "ckpt",
                      {{"ls", list},
                       {"get", get},
                       {"info", info},
                       {"verify", verify},
                       {"diff", diff},
                       {"reshard", reshard_copy}});
}

}  // namespace tycho
