// Refuses a tokenizer before rows are read with it.
#include "trainer/data/tokenizer/tokenizer_of_rows.h"

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {

std::unique_ptr<Tokenizer> tokenizer_of_rows(const RowShape& shape, const std::string& place) {
  if (shape.tokenizer.empty())
    fail(ExitCode::kUnusable, "[data] {} is text, but there is no tokenizer", place);
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(shape.tokenizer);
  if (tokenizer->size() > shape.vocab_size)
    fail(ExitCode::kUnusable,
         "[data] {} has {} tokens, the model's vocabulary {}: set vocab_size to {} or more, or name the "
         "model's tokenizer{}",
         shape.tokenizer, tokenizer->size(), shape.vocab_size, tokenizer->size(),
         note_added_beside(*tokenizer));
  return tokenizer;
}

}  // namespace tycho
