// tycho convert: imports and exports Hugging Face models.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "host/build_facts.h"
#include "host/follow_run.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/bytes.h"
#include "trainer/hub/hub_push.h"
#include "trainer/huggingface/hf_export.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/huggingface/model_card.h"
#include "trainer/huggingface/peft_export.h"

namespace tycho {

const VerbSpec kConvertSpec = {
    "convert FROM TO",
    "Imports a Hugging Face folder as a checkpoint, or exports a run or a checkpoint as a Hugging Face "
    "folder, depending on FROM. TO must not exist yet.",
    "  tycho convert ~/models/Llama-3.2-1B runs/llama-1b\n"
    "  tycho convert runs/demo exports/demo --dtype bf16\n"
    "  tycho convert runs/demo exports/demo --follow    # ba100, ba200 and so on, during the run "
    "elsewhere\n"
    "  tycho convert runs/demo exports/demo --push hf://user/demo    # and to the hub",
    {{"merge",
      "Of a run with adapters (lora): export the model with the adapters merged into it, instead of the "
      "adapters in peft's form."},
     kEmaOption,
     {"follow",
      "Export every checkpoint of a run as TO/baSTEP, and wait for more until the run ends; folders that are "
      "there stay as they are."},
     {"dtype", "Dtype of an export: fp32, bf16, fp16, or as-is for the dtype of the import, otherwise fp32.",
      "NAME", "as-is"},
     {"shard-size", "Maximum size of each exported file.", "SIZE", "5GB"},
     {"push",
      "Export, then send TO to this model on the Hugging Face hub in one commit. Creates the repository and "
      "the branch where they are missing. A push that was interrupted goes on with the same command.",
      "hf://OWNER/NAME[@BRANCH]"},
     {"private", "With --push: the repository must be private, and is created so."},
     {"ignore",
      "Of an import: keys of config.json that Tycho does not know and that do not change what the model "
      "computes.",
      "KEY,KEY"}}};

namespace {

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string shortened(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, ... ({} in all)", fmt::join(names.begin(), names.begin() + kShown, ", "),
                     names.size());
}

int64_t shard_bytes(const std::string& text) {
  try {
    const Bytes size = Bytes::parse(text);
    if (size.value > 0) return size.value;
  } catch (const Error&) {
    // The same message for everything that is not a size.
  }
  fail(ExitCode::kUsage, "[tycho convert] --shard-size expected a size such as \"5GB\", got \"{}\"", text);
}

/// Returns the command to type next.
std::string next_command(const ImportReport& report, const std::string& to) {
  const auto& kept = report.kept_files;
  if (report.has_tokenizer) return fmt::format("tycho generate {} --prompt 'Once upon a time'", to);
  const bool there = std::find(kept.begin(), kept.end(), "tokenizer.json") != kept.end();
  return fmt::format("tycho ckpt info {}  # {}: it cannot generate text", to,
                     there ? "no tokenizer that Tycho supports" : "no tokenizer.json");
}

/// Returns the names in a text that commas separate.
std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (end > 0) names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

int import_folder(const std::string& from, const std::string& to, const std::vector<std::string>& ignore) {
  const ImportReport report = import_hf(real_files(), from, to, ignore);
  fmt::print("read {}: {}, {} parameters, {} in {} file{}\n", from, report.family,
             human_count(static_cast<double>(report.num_params)), fmt::join(report.dtypes, " and "),
             report.num_shards, report.num_shards == 1 ? "" : "s");
  if (!report.ignored.empty())
    fmt::print("skipped, because the model computes it: {}\n", shortened(report.ignored));
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  fmt::print("wrote {}: fp32, {}, with {}\nnext: {}\n", report.checkpoint.path,
             human_bytes(static_cast<double>(report.checkpoint.num_bytes)), fmt::join(report.kept_files, " "),
             next_command(report, to));
  return 0;
}

int export_peft(const CheckpointReader& checkpoint, const std::string& to, bool ema,
                const std::string& card) {
  const AdapterReport report = export_adapters(real_files(), checkpoint, to, card);
  fmt::print("read {}: step {}, {}adapters of {} parameters\n", checkpoint.info().path,
             checkpoint.info().step, ema ? "average of the " : "",
             human_count(static_cast<double>(report.num_params)));
  fmt::print("wrote {}: fp32, {}, {}\n", to, human_bytes(static_cast<double>(report.num_bytes)),
             fmt::join(report.files, " "));
  fmt::print("next: peft's PeftModel.from_pretrained(base, \"{}\"); their model is {}\n", to, report.base);
  return 0;
}

int export_weights(const CheckpointReader& checkpoint, const std::string& to, const ExportOptions& options,
                   bool ema) {
  if (!options.merge && holds_adapters(checkpoint)) return export_peft(checkpoint, to, ema, options.card);
  const ExportReport report = export_hf(real_files(), checkpoint, to, options);
  fmt::print("read {}: step {}, {}{} parameters\n", checkpoint.info().path, checkpoint.info().step,
             ema ? "average of " : "", human_count(static_cast<double>(report.num_params)));
  fmt::print("wrote {}: {}, {}, {} in {} file{}, with {}\n", to, report.architecture, report.dtype,
             human_bytes(static_cast<double>(report.num_bytes)), report.shards.size(),
             report.shards.size() == 1 ? "" : "s", fmt::join(report.files, " "));
  for (const std::string& warning : report.warnings) fmt::print("warning: {}\n", warning);
  fmt::print("next: transformers' AutoModelForCausalLM.from_pretrained(\"{}\")\n", to);
  return 0;
}

int export_checkpoint(const std::string& from, const std::string& to, const ExportOptions& options,
                      bool ema) {
  const CheckpointInfo info = find_checkpoint(from);
  return export_weights(CheckpointReader(info, evaluated_weights(info, ema)), to, options, ema);
}

/// Returns the provenance of the run that wrote a checkpoint; null where it is not beside it.
Json provenance_of(const CheckpointInfo& info) {
  const std::filesystem::path run = std::filesystem::path(info.path).parent_path().parent_path();
  std::error_code error;
  if (!std::filesystem::is_regular_file(run / "provenance.json", error)) return Json();
  return parse_json(read_file((run / "provenance.json").string()), (run / "provenance.json").string());
}

void print_push(const HubPushReport& report, const HubName& to) {
  if (!report.is_changed) {
    fmt::print("pushed nothing to {}: it has these files at {}\n", to.text(), report.url);
  } else {
    fmt::print("pushed to {}: {} of large files sent; commit writes {}\n", to.text(),
               human_bytes(static_cast<double>(report.sent_bytes)), shortened(report.written));
    if (!report.deleted.empty()) fmt::print("deleted in the same commit: {}\n", shortened(report.deleted));
    fmt::print("commit: {}\n", report.url);
  }
  if (report.keeps_card) fmt::print("kept: the repository's own README.md\n");
}

/// Exports a checkpoint, unless `to` is its export already, and sends the folder to the hub.
int push_checkpoint(const std::string& from, const std::string& to, ExportOptions options, bool ema,
                    const HubName& hub, bool is_private) {
  const CheckpointInfo info = find_checkpoint(from);
  const CheckpointReader checkpoint(info, evaluated_weights(info, ema));
  const CardRequest request{hub.id.substr(hub.id.find('/') + 1), build_facts().version, ema ? "average" : "",
                            provenance_of(info), !options.merge && holds_adapters(checkpoint)};
  options.card = model_card(info, options, request);
  const HubClient client(hub_settings());
  create_repository(client, hub,
                    is_private);  // before the export, which may take long: the token may not allow it
  const std::string card = to + "/README.md";
  const bool is_exported = std::filesystem::is_regular_file(card) &&
                           read_file(card).find(card_mark(info, options, request)) != std::string::npos;
  if (is_exported)
    fmt::print("kept {}: it is the export of {}\n", to, info.path);
  else
    export_weights(checkpoint, to, options, ema);
  std::fflush(stdout);
  const HubPush push{
      hub, to, fmt::format("Step {} of {}", info.step, request.name),
      [&](const std::string& path) { return !request.is_adapter && holds_exported_weights(path); },
      &is_own_card};
  print_push(push_folder(client, push), hub);
  return 0;
}

/// Writes a Hugging Face folder for each checkpoint, named like those of LLM Foundry's hf_checkpointer.
int follow_exports(const std::string& from, const std::string& to, const ExportOptions& options, bool ema) {
  const auto folder_of = [&](const CheckpointInfo& info) { return fmt::format("{}/ba{}", to, info.step); };
  make_dirs(real_files(), to);
  return follow_checkpoints(
      from, stop_on_signals(),
      [&](const CheckpointInfo& info) { return !std::filesystem::exists(folder_of(info)); },
      [&](const CheckpointInfo& info) {
        if (ema && !has_average(info)) return skip_without_average(info);
        export_checkpoint(info.path, folder_of(info), options, ema);
      });
}

}  // namespace

int run_convert(const Arguments& arguments) {
  const std::string from =
      without_slash(word(arguments, 0, "what to convert: a Hugging Face folder, a run or a checkpoint"));
  const std::string to = without_slash(word(arguments, 1, "the folder to write"));
  no_more_words(arguments, 2);
  const ExportOptions options = {arguments.text("dtype"), shard_bytes(arguments.text("shard-size")),
                                 arguments.has("merge")};
  const bool ema = arguments.has("ema");
  if (arguments.has("ignore") && !is_hf_folder(from))
    fail(ExitCode::kUsage,
         "[tycho convert] --ignore is about the config.json of a Hugging Face folder, and {} is none; remove "
         "it",
         from);
  if (arguments.has("push") && (arguments.has("follow") || is_hf_folder(from)))
    fail(ExitCode::kUsage,
         "[tycho convert] --push expected one run or checkpoint to export, got {}; remove one of them",
         arguments.has("follow") ? "--follow too" : from + ", a Hugging Face folder");
  if (arguments.has("private") && !arguments.has("push"))
    fail(ExitCode::kUsage, "[tycho convert] --private expected --push beside it");
  if (arguments.has("follow")) return follow_exports(from, to, options, ema);
  if (is_hf_folder(from)) {
    if (ema)
      fail(ExitCode::kUsage,
           "[tycho convert] --ema is about a checkpoint of Tycho's, and {} is a Hugging Face folder; remove "
           "it",
           from);
    return import_folder(from, to, comma_separated(arguments.has("ignore") ? arguments.text("ignore") : ""));
  }
  const bool holds_checkpoints = std::filesystem::is_directory(from + "/checkpoints") ||
                                 std::filesystem::exists(from + "/COMMIT") || !list_checkpoints(from).empty();
  if (!holds_checkpoints)
    fail(ExitCode::kUnusable,
         "[tycho convert] {} is neither a Hugging Face folder (with a config.json) nor a run or a checkpoint",
         from);
  if (!arguments.has("push")) return export_checkpoint(from, to, options, ema);
  return push_checkpoint(from, to, options, ema, parse_push_name(arguments.text("push")),
                         arguments.has("private"));
}

}  // namespace tycho
