// Fuzz targets: checkpoints, records of runs, and commands.
#include <string>

#include "tests/fuzz/targets.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/command.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/lock/owner.h"
#include "trainer/recipe/config_io.h"
#include "trainer/sweep/ledger.h"

namespace tycho {
namespace {

void safetensors(std::string_view bytes) {
  refused_or_taken([&] {
    // The first bytes say how long the file is, so that spans can be right.
    const int64_t file_bytes = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) * int64_t{16};
    parse_safetensors_header(bytes.substr(bytes.empty() ? 0 : 1), file_bytes, "fuzz");
  });
}

void manifest(std::string_view bytes) {
  refused_or_taken([&] { parse_manifest(bytes, "fuzz"); });
  refused_or_taken([&] { manifest_from_json(parse_json(bytes, "fuzz"), "fuzz"); });
}

/// The recipe that a checkpoint holds: what is accepted is accepted again as it is written.
void config_json(std::string_view bytes) {
  refused_or_taken([&] {
    const Json json = parse_json(bytes, "fuzz");
    refused_or_taken([&] { read_trained_config(json, TrainedUse::kModel, "fuzz"); });
    std::vector<ConfigProblem> problems;
    const TrainConfig config = read_config(json, problems);
    if (!problems.empty()) return;
    const Json written = config_to_json(config);
    must(config_to_json(read_config_or_fail(written)) == written, "a written recipe reads as another");
  });
}

/// What an operator or a checkpoint says is to be changed in a run.
void commands(std::string_view bytes) {
  refused_or_taken([&] {
    const Json json = parse_json(bytes, "fuzz");
    refused_or_taken([&] {
      const Json written = Controls::from_json(json).to_json();
      if (!written.is_null())
        must(Controls::from_json(written).to_json() == written, "written controls read as others");
    });
    if (!json.is_object() || !json.value("name", Json()).is_string()) return;
    const Json values = json.value("values", Json::array());
    if (!values.is_array()) return;
    const Command made = make_command(json["name"], values, json.value("named", Json()), "fuzz");
    command_text(made);
    must(command_json(command_from_json(command_json(made))) == command_json(made),
         "a written command reads as another");
  });
}

void lock_owner(std::string_view bytes) {
  refused_or_taken([&] {
    const Owner owner = parse_owner(bytes, "fuzz");
    describe(owner);
    must(owner_line(parse_owner(owner_line(owner), "fuzz")) == owner_line(owner),
         "a written owner reads as another");
  });
}

void ledger(std::string_view bytes) {
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const Json fact = read_ledger_line(bytes.substr(begin, end - begin));
    if (!fact.is_null()) ledger_line(fact);
    begin = end + 1;
  }
}

}  // namespace

std::vector<FuzzTarget> record_fuzz_targets() {
  return {{"safetensors", safetensors}, {"manifest", manifest},          {"config_json", config_json, 4096},
          {"commands", commands, 256},  {"lock_owner", lock_owner, 512}, {"ledger", ledger, 256}};
}

}  // namespace tycho
