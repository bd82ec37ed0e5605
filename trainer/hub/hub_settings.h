// How this machine reaches the Hugging Face hub: the variables that huggingface_hub reads.
#pragma once
#include <string>

namespace tycho {

/// The hub's address, the token, and the cache.
struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without a slash at its end
  std::string token;                                // "" for none; masked in all output
  std::string cache;  // HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub
  bool is_offline = false;   // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE
  bool has_links = true;     // false by HF_HUB_DISABLE_SYMLINKS
  bool shares_blobs = true;  // false by HF_HUB_DISABLE_SHARED_BLOBS or HF_HUB_DISABLE_XET
};

/// Reads the environment and the token's file. Throws Error (kUnusable) if HF_ENDPOINT is no address.
HubSettings hub_settings();

}  // namespace tycho
