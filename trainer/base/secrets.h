// What must not be shown: values that were registered, and the parts of URLs that carry passwords and keys.
// Torch-free.
#pragma once
#include <string>
#include <string_view>

#include "trainer/base/json.h"

namespace tycho {

/// Stands where a secret was.
inline constexpr const char* kMasked = "***";

/// Shorter values occur by chance, so they are not masked.
inline constexpr size_t kShortestSecretBytes = 6;

/// Whether variables of this name usually hold a secret: AWS_SECRET_ACCESS_KEY, HF_TOKEN, GH_PAT, DB_PW. Goes
/// by whole words, so TOKENIZER and MAX_TOKENS are not among them.
bool is_secret_name(std::string_view name);

/// Makes the functions below mask this value, and each line of it, for the rest of the process. False when it
/// is too short to be masked. From any thread. The program and its engine have a register each.
bool register_secret(const std::string& value);

/// Whether the text holds a registered value.
bool holds_secret(std::string_view text);

/// The text as it may go to a screen, a file or an error: without registered values, and
/// "https://user:pass@host/x?sig=abc" as "https://***@host/x?***". Takes linear time in the text. From any
/// thread.
std::string without_secrets(std::string text);

/// The same for every text in it, keys included.
Json json_without_secrets(Json json);

}  // namespace tycho
