// The lines of a JSONL file as examples, by several threads.
#pragma once
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/chat/chat_example.h"

namespace tycho {

/// The examples of all lines that are not blank, in order. Throws the Error of the first line that is wrong,
/// naming path:line, whichever thread met it; and one with the code 128 + signal soon after `stop` holds one.
std::vector<ChatExample> encode_lines(std::string_view text, const std::string& path,
                                      const ChatEncoder& encoder, const std::atomic<int>& stop);

}  // namespace tycho
