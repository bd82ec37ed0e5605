// Files that others may have put in the place of ours: what is no regular file is neither waited for nor
// written to.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Most bytes of a file that is read whole: metrics of years, an index of millions of shards.
inline constexpr int64_t kMostFileBytes = int64_t{2} << 30;
/// Most bytes of data that are read whole.
inline constexpr int64_t kMostDataBytes = int64_t{1} << 40;
/// Most bytes of what somebody typed at the command line or pipes in.
inline constexpr int64_t kMostTypedBytes = int64_t{64} << 20;

/// A descriptor for appending, which closes on exec, or -1 with errno; the file is created when absent. A
/// link is refused with an Error (kStorage): whoever may write to a folder could otherwise send what is
/// appended to any file of this user. A pipe that nobody reads is an error, too.
int open_to_append(const std::string& path);
/// A descriptor for reading, which closes on exec, or -1 with errno. A pipe or a device would keep a run
/// waiting, or fill its memory: these are refused with an Error (kUnusable) that names the path.
int open_regular_file(const std::string& path);
/// read_file with a bound of its own.
std::string read_file_up_to(const std::string& path, int64_t most_bytes);
/// Reads a path that somebody typed, which may also be a pipe or a device: the shell's <(...), /dev/stdin.
std::string read_typed_file(const std::string& path, int64_t most_bytes = kMostTypedBytes);
/// Whether the path is there and is written to in place: neither a regular file nor a folder.
bool is_stream(const std::string& path);
/// Writes `text` where somebody asked for it: like write_file_atomically, or, when is_stream, to that.
void write_typed_file(FileOps& files, const std::string& path, std::string_view text);

}  // namespace tycho
