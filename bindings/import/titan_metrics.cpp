// TorchTitan's `metrics`: the console, TensorBoard and W&B.
#include "bindings/import/systems.h"

namespace tycho {
namespace {

bool is_on(Mapper& mapper, const char* path) { return titan_value(mapper, path, "false") == "true"; }

void map_wandb(Mapper& mapper, const DocEntry& entry) {
  if (!is_on(mapper, "metrics.enable_wandb")) return mapper.remark(entry, "as it is here");
  mapper.note(entry, kOfflineWandb);
  mapper.keep_comments(entry);
}

void map_tensorboard(Mapper& mapper, const DocEntry& entry) {
  if (!is_on(mapper, "metrics.enable_tensorboard")) return mapper.remark(entry, "as it is here");
  mapper.keep_comments(entry);
}

void map_tensorboard_folder(Mapper& mapper, const DocEntry& entry) {
  if (!is_on(mapper, "metrics.enable_tensorboard")) return mapper.remark(entry, "TensorBoard is off");
  mapper.keep_comments(entry);
}

const Rows kMetricKeys = {
    to("log_freq", "log.every", count_of("ba")),
    by("enable_tensorboard", map_tensorboard),
    by("save_tb_folder", map_tensorboard_folder),
    noted("save_for_all_ranks", {"false"}, "numbers are of all ranks together, and rank 0 writes them"),
    by("enable_wandb", map_wandb),
    left_out("disable_color_printing", "use NO_COLOR=1"),
};

/// Maps metrics. Their folder is in dump_folder; W&B's other settings come from environment variables.
void map_metrics(Mapper& mapper, const DocEntry& entry) {
  mapper.out().comments_before(entry.node.line);
  mapper.walk(entry, kMetricKeys);
  const bool tensorboard = is_on(mapper, "metrics.enable_tensorboard");
  const bool wandb = is_on(mapper, "metrics.enable_wandb");
  if (!tensorboard && !wandb) return;
  open_sinks(mapper, entry);
  if (tensorboard)
    mapper.out().write(fmt::format("t.log.tensorboard {{ dir = {}, names = \"torchtitan\" }},",
                                   lua_quoted(titan_value(mapper, "job.dump_folder", "./outputs") + "/" +
                                              titan_value(mapper, "metrics.save_tb_folder", "tb"))),
                       0, "", entry.node.place());
  if (wandb)
    mapper.out().write(
        "t.log.wandb { project = t.env(\"WANDB_PROJECT\", \"torchtitan\"), entity = t.env(\"WANDB_TEAM\", "
        "\"\"), "
        "names = \"torchtitan\" },",
        0, "", entry.node.place());
  mapper.out().close("}");
}

}  // namespace

Row titan_metrics_row() { return by("metrics", map_metrics, kMetricKeys); }

}  // namespace tycho
