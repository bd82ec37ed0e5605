// The options by which a verb that writes text chooses tokens.
#pragma once
#include "host/arguments.h"
#include "host/verb.h"
#include "trainer/base/error.h"

namespace tycho {

inline constexpr OptionSpec kTemperatureOption = {"t,temperature", "0 always takes the most likely token.",
                                                  "X", "1"};
inline constexpr OptionSpec kTopKOption = {"top-k", "Choose among the K most likely; 0 for all.", "K", "0"};
inline constexpr OptionSpec kTopPOption = {
    "top-p", "Choose among the most likely whose probabilities sum to P.", "P", "1"};
inline constexpr OptionSpec kRepetitionPenaltyOption = {
    "repetition-penalty", "Above 1, tokens already seen become less likely.", "X", "1"};
inline constexpr OptionSpec kStopOption = {"stop", "End a text before this one; can be given several times.",
                                           "TEXT"};
inline constexpr OptionSpec kSeedOption = {"seed", "The same seed gives the same texts.", "N", "0"};

/// Reads the options above, and max-tokens, into `chosen`: ChatOptions or GenerateRequest.
template <class Chosen>
void read_sampling(const Arguments& arguments, Chosen& chosen) {
  chosen.max_tokens = arguments.integer("max-tokens", 1);
  chosen.temperature = arguments.number("temperature", 0, 1e6);
  chosen.top_k = arguments.integer("top-k", 0);
  chosen.top_p = arguments.number("top-p", 0, 1);
  chosen.repetition_penalty = arguments.number("repetition-penalty", 1e-3, 1e3);
  chosen.stop = arguments.all("stop");
  for (const std::string& stop : chosen.stop)
    if (stop.empty()) fail(ExitCode::kUsage, "[{}] --stop expected a text, got an empty one", arguments.verb);
  chosen.seed = static_cast<uint64_t>(arguments.integer("seed", 0));
}

}  // namespace tycho
