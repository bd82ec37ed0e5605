// Times training a tokenizer and encoding with one, without the start of a process and the reading of files.
//   bench_tokenizer train FILE VOCABULARY THREADS OUT      bench_tokenizer encode TOKENIZER FILE IDS
// Prints seconds; `encode` three passes, the first with an empty cache.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "bench/timing.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace {

void train(char** arguments) {
  tycho::BpeTrainOptions options;
  options.vocab_size = std::atoi(arguments[1]);
  options.threads = std::atoi(arguments[2]);
  std::string text;
  std::cout << seconds([&] {
    text = tycho::train_bpe(tycho::find_input_files({arguments[0]}, {}).files, options);
  }) << "\n";
  std::ofstream(arguments[3], std::ios::binary) << text;
}

void encode(char** arguments) {
  const std::string text = tycho::read_file(arguments[1]);
  const auto tokenizer = tycho::load_tokenizer(arguments[0]);
  std::vector<int32_t> ids;
  for (int pass = 0; pass < 3; ++pass) std::cout << seconds([&] { ids = tokenizer->encode(text); }) << "\n";
  std::ofstream(arguments[2], std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
}

}  // namespace

int main(int count, char** words) {
  const std::string verb = count > 1 ? words[1] : "";
  if (verb == "train" && count == 6) {
    train(words + 2);
  } else if (verb == "encode" && count == 5) {
    encode(words + 2);
  } else {
    std::cerr << "bench_tokenizer train FILE VOCABULARY THREADS OUT | encode TOKENIZER FILE IDS\n";
    return 2;
  }
}
