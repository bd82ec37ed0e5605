// tycho data: converts text and JSONL to data sets, and says what is in data sets.
#include "host/data/contents.h"
#include "host/data/convert.h"
#include "host/data/map.h"
#include "host/data/preload.h"
#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/bytes.h"
#include "trainer/base/json.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/dataset_damage.h"

namespace tycho {

const VerbSpec kDataSpec = {
    "data convert INPUT ... --tokenizer FILE --out DIR\n"
    "       tycho data convert INPUT ... --chat [--tokenizer FILE] --out DIR\n"
    "       tycho data convert --dataset NAME [--config NAME] --splits LIST --tokenizer FILE --out DIR\n"
    "       tycho data inspect DIR\n"
    "       tycho data verify DIR\n"
    "       tycho data stats DIR | INPUT ...\n"
    "       tycho data sample DIR\n"
    "       tycho data merge DIR [FOLDER ...]\n"
    "       tycho data map FUNCTION.lua INPUT ... [field=value ...] --out FILE.jsonl\n"
    "       tycho data preload URL DIR\n"
    "       tycho data preload RECIPE [KEY=VALUE ...]",
    "Converts text, JSONL, CSV and conversations, also .gz and .zst, Parquet and Arrow to MDS shards; shows, "
    "counts and "
    "checks what a data set contains; joins data sets; turns lines of any shape into finetuning rows with a "
    "Lua function; "
    "copies "
    "remote data to a disk of this machine.",
    "  tycho data convert books/ --tokenizer tokenizer.json --eos-text '<|endoftext|>' --out data/books\n"
    "  tycho data convert c4.jsonl.gz --tokenizer tokenizer.json --eos-text '<|endoftext|>' --out data/c4\n"
    "  tycho data convert sft.jsonl --chat --out data/sft\n"
    "  tycho data convert hf://datasets/OWNER/NAME --split train --tokenizer tokenizer.json --out data/name\n"
    "  tycho data convert --dataset allenai/c4 --config en --splits train_small,val_small --tokenizer "
    "tokenizer.json --eos-text '<|endoftext|>' --out data/c4\n"
    "  tycho data inspect data/books\n"
    "  tycho data verify data/books\n"
    "  tycho data stats data/books --eos-token 0\n"
    "  tycho data stats books/ c4.jsonl.gz --tokenizer tokenizer.json\n"
    "  tycho data sample data/books/train --from 100 --number 2\n"
    "  tycho data merge data/web 2023 2024\n"
    "  tycho data map rows.lua raw.jsonl --out sft.jsonl\n"
    "  srun tycho data preload s3://bucket/c4 /nvme/c4 --split train,val",
    {{"tokenizer",
      "convert: a tokenizer.json, or a model of the hub: OWNER/NAME. stats, sample: instead of the data "
      "set's own; of texts, counts tokens.",
      "FILE"},
     {"out", "convert: folder of the new data set. map: the file that is written.", "DIR"},
     {"chat",
      "convert: lines of JSONL, or rows of Parquet or Arrow, are conversations, or prompts with responses. "
      "They stay "
      "text, or become "
      "tokens with --tokenizer."},
     {"dataset",
      "convert: a data set of the Hugging Face hub, or a folder, as LLM Foundry names it: allenai/c4.",
      "NAME"},
     {"config", "convert: configuration to read of a data set whose README.md declares several, such as en.",
      "NAME", ""},
     {"splits",
      "convert: splits to write, each into its folder; those that are complete are left as they are. "
      "train_small is the first 100000 samples of train; val_small, val_xsmall and val_xxsmall the first "
      "10000, 3000 and 100 of the validation split, as in LLM Foundry.",
      "LIST", ""},
     {"keep",
      "convert: keep files of the hub in its cache. Otherwise they pass through DIR and are removed."},
     {"data-subset", "convert: LLM Foundry's name for --config.", "NAME"},
     {"out-root", "convert: LLM Foundry's name for --out.", "DIR"},
     {"num-workers", "convert: LLM Foundry's name for --threads.", "N"},
     {"template", "convert --chat --tokenizer: as template of t.data.chat.", "NAME", "chatml"},
     {"template-date", "convert --chat --tokenizer: the day that a template prints as today.", "DAY", ""},
     {"concat-tokens", "convert: tokens per sample.", "N", "2048"},
     {"ext",
      "convert, stats: endings of the files to read in folders. Default: text, JSONL, CSV, Parquet and "
      "Arrow.",
      "LIST", ""},
     {"format",
      "convert, stats: what the inputs are: text, jsonl, csv, tsv, parquet or arrow. Default: by name and "
      "contents.",
      "KIND", ""},
     {"field",
      "convert, stats: field of a JSONL line, or column of CSV, Parquet or Arrow, that holds the text.",
      "NAME", "text"},
     {"bad-rows",
      "convert, stats, map: what happens to lines and rows that cannot be used, such as invalid JSON or a "
      "text "
      "that is null: error, or skip, which leaves them out and counts them.",
      "POLICY", "error"},
     {"bos-text", "convert: text before every document.", "TEXT", ""},
     {"eos-text", "convert: text after every document.", "TEXT", ""},
     {"no-separator", "convert: join documents without a token between them."},
     {"no-added-tokens", "convert: leave out the tokens that the tokenizer adds around every text."},
     {"keep-newlines", "convert: keep CR and CR LF in text files; otherwise they become LF."},
     {"max-documents", "convert: only the first N documents.", "N"},
     {"no-wrap", "convert: drop the part of a document that does not fit into its sample."},
     {"split",
      "convert: name of the split. preload: splits to copy, separated by commas; '' for the folder itself.",
      "NAME", "train"},
     {"val-split", "convert: name of the split that --val-fraction fills.", "NAME", "val"},
     {"val-fraction", "convert: share of the documents for the validation split.", "X", "0"},
     {"hashes", "convert: checksums that index.json records, such as xxh3_128,sha256. Default: none.", "LIST",
      ""},
     {"compression", "convert: compress shards: zstd, gz, br, bz2 (each also with a level, zstd:9), snappy.",
      "NAME", ""},
     {"eos-token", "stats: the token that ends every document. Default: as the data was converted.", "N"},
     {"bos-token", "stats: the token that begins every document.", "N"},
     {"from", "sample: the first one to show, counted from 0.", "N", "0"},
     {"number", "sample: how many to show.", "N", "3"},
     {"quick", "inspect, verify: check index.json and the shards' offsets, not every token."},
     {"threads",
      "convert, verify: CPU threads; 0 for one per core. convert of the hub's files, preload: also downloads "
      "at "
      "a time; 0 for 8.",
      "N", "0"},
     kJsonOption}};

namespace {

std::string joined(const std::vector<std::string>& names, const std::vector<std::string>& kinds) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", names[i], i < kinds.size() ? kinds[i] : "?");
  }
  return text;
}

int inspect(const Arguments& arguments) {
  const std::vector<DatasetInfo> splits = dataset_info(word(arguments, 1, "a data set's folder"));
  no_more_words(arguments, 2);
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"split", "shards", "samples", "bytes", "tokens", "per sample", "columns"}};
  std::vector<std::string> damage;
  for (const DatasetInfo& info : splits) {
    const std::vector<std::string> found = find_damage(info.dir, arguments.has("quick"));
    damage.insert(damage.end(), found.begin(), found.end());
    list.push_back({{"dir", info.dir},
                    {"shards", info.shards},
                    {"samples", info.samples},
                    {"bytes", info.bytes},
                    {"column_names", info.column_names},
                    {"column_encodings", info.column_encodings},
                    {"hashes", info.hashes},
                    {"tokenizer_hash", info.tokenizer_hash},
                    {"concat_tokens", info.concat_tokens},
                    {"documents", info.documents},
                    {"tokens", info.tokens},
                    {"vocab_size", info.vocab_size},
                    {"damage", found}});
    rows.push_back({info.dir, fmt::to_string(info.shards), fmt::to_string(info.samples),
                    human_bytes(static_cast<double>(info.bytes)),
                    human_count(static_cast<double>(info.tokens)), fmt::to_string(info.concat_tokens),
                    joined(info.column_names, info.column_encodings)});
  }
  fmt::print("{}", arguments.has("json") ? list.dump(2) + "\n" : text_table(rows));
  report_damage(damage);
  return 0;
}

}  // namespace

int run_data(const Arguments& arguments) {
  return pick_subverb(arguments, "data",
                      {{"convert", convert_data},
                       {"inspect", inspect},
                       {"verify", verify_data},
                       {"stats", show_data_stats},
                       {"sample", show_samples},
                       {"merge", merge_data},
                       {"map", map_data},
                       {"preload", preload_data}});
}

}  // namespace tycho
