// Holds what comes before its turn.
#include "trainer/eval/ordered_outputs.h"

#include <utility>

namespace tycho {

OrderedOutputs::OrderedOutputs(size_t count, TextReceiver& receiver) : receiver_(receiver), waiting_(count) {
  take_turn();
}

void OrderedOutputs::piece(size_t text, const std::string& piece) {
  if (text == turn_)
    receiver_.piece(piece);
  else
    waiting_[text].pieces += piece;
}

void OrderedOutputs::end(size_t text, Generated result) {
  waiting_[text].result = std::move(result);
  while (turn_ < waiting_.size() && waiting_[turn_].result) {
    receiver_.end(*waiting_[turn_].result);
    waiting_[turn_++] = {};
    take_turn();
  }
}

void OrderedOutputs::take_turn() {
  if (turn_ == waiting_.size()) return;
  receiver_.begin(turn_);
  if (const std::string& pieces = waiting_[turn_].pieces; !pieces.empty()) receiver_.piece(pieces);
}

}  // namespace tycho
