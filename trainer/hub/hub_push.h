// Pushing: a folder of this machine becomes one commit of a repository on the Hugging Face hub.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/hub/hub_client.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

struct HubPush {
  HubName to;          // a model; its revision is a branch
  std::string folder;  // all files in it are sent
  std::string summary;
  /// True for a file of the repository that this push replaces, also where the folder has none of its name.
  std::function<bool(const std::string& path)> is_stale;
  /// True for the text of a README.md that may be replaced.
  std::function<bool(const std::string& text)> is_own_card;
};

struct HubPushReport {
  std::string commit, url;  // of the commit; the one before if nothing changed
  bool is_changed = true;
  std::vector<std::string> written, deleted;  // by the commit
  size_t num_kept = 0;                        // files that were the same
  int64_t sent_bytes = 0;                     // to the store of large files
  bool keeps_card = false;                    // the repository has a README.md of its own
};

/// Parses where to push to. Throws Error (kUnusable) for what is not a branch of a model's repository.
HubName parse_push_name(const std::string& text);

/// Creates the repository unless it exists, as its owner's settings say or `is_private`. Throws Error:
/// kUnusable without a token, with one that may not write, or for a public repository that should be private;
/// kStorage if the hub cannot be reached.
void create_repository(const HubClient& client, const HubName& to, bool is_private = false);

/// Sends the folder in one commit, whose parent is the branch as it was found. Creates the branch unless it
/// exists. Files that the repository or its store has are not sent again, so that a push that was killed can
/// be repeated. Throws Error like create_repository(), and kUnusable if the branch has moved meanwhile.
HubPushReport push_folder(const HubClient& client, const HubPush& push);

}  // namespace tycho
