// Address and key of a Weights & Biases server, from the recipe and the environment.
#pragma once
#include <optional>
#include <string>

#include "trainer/recipe/log.h"

namespace tycho {

struct WandbSettings {
  std::string url;            // "https://api.wandb.ai", without a slash at its end
  std::string entity;         // "" for the account's own
  std::string authorization;  // a header line; a secret
};

/// Returns true when the run is to send its numbers: `mode` says so, or WANDB_MODE when `mode` is "". Throws
/// Error (kRecipe) for another value of WANDB_MODE.
bool is_online(const WandbSinkConfig& config);

/// Returns the address of WANDB_BASE_URL, or W&B's own, and the key of WANDB_API_KEY, or of the file that
/// NETRC names, or of ~/.netrc. Masks the key from here on. Throws Error (kUnusable) that says what to do
/// when there is no key.
WandbSettings find_wandb_settings(const std::string& entity);

/// Returns the password of a host in a file of the form of ~/.netrc; nullopt when there is none.
std::optional<std::string> netrc_password(const std::string& text, const std::string& host);

/// Returns the address of the run's page: "https://wandb.ai/team/project/runs/abcd1234".
std::string wandb_run_page(const std::string& url, const std::string& entity, const std::string& project,
                           const std::string& id);

}  // namespace tycho
