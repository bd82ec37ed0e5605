// What must not be shown: values that were registered, and the parts of URLs that carry passwords and keys.
// Torch-free.
#pragma once
#include <string>
#include <string_view>

#include "trainer/base/json.h"

namespace tycho {

/// Replacement for a secret.
inline constexpr const char* kMasked = "***";

/// Shorter values occur by chance and are not masked.
inline constexpr size_t kShortestSecretBytes = 6;

/// Returns true when variables of this name usually hold a secret: AWS_SECRET_ACCESS_KEY, HF_TOKEN, GH_PAT,
/// DB_PW. Compares whole words, so TOKENIZER and MAX_TOKENS are not among them.
bool is_secret_name(std::string_view name);

/// Registers a value, and each line of it, to be masked for the rest of the process. Returns false when it is
/// too short to be masked. Callable from any thread. The program and its engine have separate registers.
bool register_secret(const std::string& value);

/// Returns true when the text contains a registered value, other than by chance as a part of a hash.
bool holds_secret(std::string_view text);

/// Returns the text as it may be shown on a screen, in a file or in an error: without registered values, and
/// "https://user:pass@host/x?sig=abc" as "https://***@host/x?***". Takes time linear in the text. Callable
/// from any thread.
std::string without_secrets(std::string text);

/// Applies without_secrets to every string in the value, keys included.
Json json_without_secrets(Json json);

}  // namespace tycho
