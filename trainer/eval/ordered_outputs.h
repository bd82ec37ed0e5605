// Texts that grow at the same time, handed on one after the other. Torch-free.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trainer/eval/generation_state.h"

namespace tycho {

/// Receives texts: each begins, arrives in pieces of whole characters, and ends before the next one begins.
class TextReceiver {
 public:
  virtual ~TextReceiver() = default;
  virtual void begin(size_t text) = 0;
  virtual void piece(const std::string& text) = 0;
  virtual void end(const Generated& text) = 0;
};

class OrderedOutputs {
 public:
  /// Begins the first of `count` texts. `receiver` must outlive this object.
  OrderedOutputs(size_t count, TextReceiver& receiver);
  /// Adds a piece of a text: passed on at once if the texts before it have ended, otherwise once they have.
  void piece(size_t text, const std::string& piece);
  /// Ends a text.
  void end(size_t text, Generated result);

 private:
  struct WaitingText {
    std::string pieces;
    std::optional<Generated> result;
  };
  /// Begins the next text and passes on what is held of it.
  void take_turn();

  TextReceiver& receiver_;
  std::vector<WaitingText> waiting_;
  size_t turn_ = 0;
};

}  // namespace tycho
