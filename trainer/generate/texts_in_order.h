// Texts that grow at the same time, handed on one after the other. Torch-free.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trainer/generate/written_text.h"

namespace tycho {

/// Takes texts: each begins, comes in pieces of whole characters, and ends before the next one begins.
class TextReceiver {
 public:
  virtual ~TextReceiver() = default;
  virtual void begin(size_t text) = 0;
  virtual void piece(const std::string& text) = 0;
  virtual void end(const Generated& text) = 0;
};

class TextsInOrder {
 public:
  /// Begins the first of `count` texts. `receiver` outlives this.
  TextsInOrder(size_t count, TextReceiver& receiver);
  /// More of a text: handed on at once when those before it have ended, else when they have.
  void piece(size_t text, const std::string& piece);
  /// Nothing more comes of this text.
  void end(size_t text, Generated result);

 private:
  struct Held {
    std::string pieces;
    std::optional<Generated> result;
  };
  /// Begins the text whose turn it is and hands on what is held of it.
  void take_turn();

  TextReceiver& receiver_;
  std::vector<Held> held_;
  size_t turn_ = 0;
};

}  // namespace tycho
