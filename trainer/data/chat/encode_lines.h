// Rows of finetuning data as examples, by several threads.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/chat/chat_example.h"

namespace tycho {

/// The examples that `encode` makes of the rows 0 to count - 1, by several threads, in order. Throws the
/// Error of the first row that is wrong, whichever thread met it; and one with the code 128 + signal soon
/// after `stop` holds one. `place`: of the rows, for messages.
std::vector<ChatExample> encode_rows(size_t count, const std::function<ChatExample(size_t)>& encode,
                                     const std::string& place, const std::atomic<int>& stop);

/// The examples of all lines that are not blank, by encode_rows; its errors name path:line.
std::vector<ChatExample> encode_lines(std::string_view text, const std::string& path,
                                      const ChatEncoder& encoder, const std::atomic<int>& stop);

}  // namespace tycho
