// Versions of an artifact of Weights & Biases that hold references alone: where the checkpoints of a run are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/loggers/metric_record.h"

namespace tycho {

struct WandbArtifact {
  std::string name, type, digest;
  std::vector<std::string> aliases;
  Json metadata = json_object();
  std::string entry, reference;  // of its only file: a name, and where it is
};

/// Returns an id of a version, or of a series of versions, that belongs to `text` alone.
std::string wandb_client_id(const std::string& text);

/// Returns the version for a checkpoint of the run `id`: it refers to the folder and copies nothing.
WandbArtifact checkpoint_artifact(const std::string& id, const StoredCheckpoint& checkpoint);

/// Returns the manifest as W&B stores it.
std::string wandb_manifest(const WandbArtifact& artifact);

}  // namespace tycho
