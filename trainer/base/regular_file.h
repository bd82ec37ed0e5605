// Files that others may have put in the place of ours: what is no regular file is neither waited for nor
// written to.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Maximum size of a file that is read whole: metrics of years, an index of millions of shards.
inline constexpr int64_t kMostFileBytes = int64_t{2} << 30;
/// Maximum size of a data file that is read whole.
inline constexpr int64_t kMostDataBytes = int64_t{1} << 40;
/// Maximum size of input that was typed at the command line or is piped in.
inline constexpr int64_t kMostTypedBytes = int64_t{64} << 20;

/// Opens a file for appending, with close-on-exec, and creates it when absent. Returns -1 with errno on
/// failure; a pipe without a reader fails too. Throws Error (kStorage) on a symbolic link, which someone with
/// write access to the folder could point at any file of this user.
int open_to_append(const std::string& path);
/// Opens a file for reading, with close-on-exec. Returns -1 with errno on failure. Throws Error (kUnusable)
/// that names the path on a pipe or a device, which would block the run or fill its memory.
int open_regular_file(const std::string& path);
/// Same as read_file, with its own limit of bytes.
std::string read_file_up_to(const std::string& path, int64_t most_bytes);
/// Reads a path typed by a user, which may also be a pipe or a device: the shell's <(...), /dev/stdin.
std::string read_typed_file(const std::string& path, int64_t most_bytes = kMostTypedBytes);
/// Returns true when the path exists and is neither a regular file nor a folder, so that it is written in
/// place.
bool is_stream(const std::string& path);
/// Writes `text` to a path typed by a user: in place when is_stream, otherwise with write_file_atomically.
void write_typed_file(FileOps& files, const std::string& path, std::string_view text);

}  // namespace tycho
