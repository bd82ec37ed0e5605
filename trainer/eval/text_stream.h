// Text that is handed on as it is generated, up to a stop string. Torch-free.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tycho {

/// Takes the bytes of tokens and emits whole UTF-8 characters, holding back what may be the beginning of a
/// stop string. The output does not depend on where tokens end.
class TextStream {
 public:
  /// Requires non-empty stop strings.
  TextStream(std::vector<std::string> stops, std::function<void(const std::string&)> emit);

  /// Returns true when a stop string is complete: the text before it has been emitted, and nothing comes
  /// after. The first match to be complete wins; of several, the longest.
  bool add(const std::string& bytes);
  /// Emits the text held back, when no more text comes.
  void finish();

 private:
  void emit(size_t num_bytes);

  std::vector<std::string> stops_;
  std::function<void(const std::string&)> emit_;
  std::string held_;
};

}  // namespace tycho
