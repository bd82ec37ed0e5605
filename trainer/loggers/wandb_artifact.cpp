// Composes manifests as wandb 0.31 does for add_reference(..., checksum=False).
#include "trainer/loggers/wandb_artifact.h"

#include <fmt/format.h>

#include <filesystem>

#include "trainer/base/hmac.h"
#include "trainer/buckets/content_digest.h"

namespace tycho {
// The official client takes 128 random letters and digits; these are the same for a request that is repeated.
std::string wandb_client_id(const std::string& text) {
  return hex(sha256(text)) + hex(sha256(text + " again"));
}

WandbArtifact checkpoint_artifact(const std::string& id, const StoredCheckpoint& checkpoint) {
  WandbArtifact artifact;
  artifact.name = "checkpoint-" + id;
  artifact.type = "model";
  artifact.aliases = {"latest", fmt::format("step-{}", checkpoint.step)};
  artifact.metadata = {{"step", checkpoint.step}, {"bytes", checkpoint.num_bytes}};
  const bool is_remote = checkpoint.place.find("://") != std::string::npos;
  artifact.entry = fmt::format("step-{}", checkpoint.step);
  artifact.reference =
      is_remote ? checkpoint.place : "file://" + std::filesystem::absolute(checkpoint.place).string();
  // The digest of a reference without a checksum is the reference.
  artifact.digest = hex(
      content_md5(fmt::format("wandb-artifact-manifest-v1\n{}:{}\n", artifact.entry, artifact.reference)));
  return artifact;
}

std::string wandb_manifest(const WandbArtifact& artifact) {
  return Json{{"version", 1},
              {"storagePolicy", "wandb-storage-policy-v1"},
              {"storagePolicyConfig", {{"storageLayout", "V2"}}},
              {"contents",
               {{artifact.entry,
                 {{"digest", artifact.reference}, {"ref", artifact.reference}, {"skip_cache", false}}}}}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tycho
