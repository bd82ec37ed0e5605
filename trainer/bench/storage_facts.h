// Which features of a file system, as run folders need them, work. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

enum class Support { kYes, kPartly, kNo };

struct StorageFact {
  std::string name;  // "rename"
  Support support = Support::kYes;
  std::string found;   // "replaces a file atomically"
  std::string advice;  // what to do about it; empty when nothing
};

/// "lustre", "nfs", "fuse", "ext4", ...; the number in hex for one that is not known.
std::string file_system_name(const std::string& folder);
/// What to know about a kind of file system; empty for those without surprises.
std::string file_system_advice(const std::string& name);

/// Tries everything in `folder`, which is empty and writable, and leaves it empty. Takes about a second.
/// Throws Error (kStorage) when not even a file can be written.
std::vector<StorageFact> storage_facts(const std::string& folder);

}  // namespace tycho
