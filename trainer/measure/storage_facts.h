// Tests which features of a file system that run folders need work. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

enum class Support { kYes, kPartly, kNo };

struct StorageFact {
  std::string name;  // "rename"
  Support support = Support::kYes;
  std::string found;   // "replaces a file atomically"
  std::string advice;  // what to do about it; "" when nothing
};

/// Returns "lustre", "nfs", "fuse", "ext4", ...; the number in hex for an unknown one.
std::string file_system_name(const std::string& folder);
/// Returns advice about a kind of file system; "" when there is none.
std::string file_system_advice(const std::string& name);

/// Tests everything in `folder`, which must be empty and writable, and leaves it empty. Takes about a second.
/// Throws Error (kStorage) when not even a file can be written.
std::vector<StorageFact> storage_facts(const std::string& folder);

}  // namespace tycho
