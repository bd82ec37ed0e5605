// Names decide first, then magic bytes.
#include "trainer/data/sources/unread_kinds.h"

#include <array>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr std::string_view kUnpackAdvice = "unpack it and name the folder";
constexpr std::string_view kTextAdvice = "save its text as .txt or JSONL first";
constexpr std::array kUnreadKinds = {
    UnreadKind{
        ".fea", "FEA1", "Feather of version 1",
        "write it again with a newer Arrow: pyarrow.feather.write_feather(read_feather('FILE'), 'FILE')"},
    UnreadKind{".avro", "Obj\x01", "Avro", kTextAdvice},
    UnreadKind{".orc", "ORC", "ORC", kTextAdvice},
    UnreadKind{".mds", "", "an MDS shard",
               "it is already a data set: name its folder in the recipe; to convert its texts, name the "
               "folder with its index.json"},
    UnreadKind{".tar", "ustar", "a tar archive", kUnpackAdvice, 257},
    UnreadKind{".tgz", "", "a tar archive", kUnpackAdvice},
    UnreadKind{".zip", "PK\x03\x04", "a zip archive", kUnpackAdvice},
    UnreadKind{".7z", "7z\xBC\xAF", "a 7z archive", kUnpackAdvice},
    UnreadKind{".rar", "Rar!", "a rar archive", kUnpackAdvice},
    UnreadKind{".bz2", "BZh", "bzip2 data", "run bunzip2 on it, or compress it as .gz or .zst"},
    UnreadKind{".xz",
               "\xFD"
               "7zXZ",
               "xz data", "run unxz on it, or compress it as .gz or .zst"},
    UnreadKind{".lz4", "\x04\x22\x4D\x18", "lz4 data", "run unlz4 on it, or compress it as .gz or .zst"},
    UnreadKind{".pdf", "%PDF-", "a PDF", kTextAdvice},
    UnreadKind{".docx", "", "a Word document", kTextAdvice},
    UnreadKind{".epub", "", "an EPUB", kTextAdvice},
    UnreadKind{".xlsx", "", "a spreadsheet", "save it as CSV first"},
    UnreadKind{".sqlite", "SQLite format 3", "an SQLite database", kTextAdvice},
    UnreadKind{".npy", "\x93NUMPY", "a NumPy array",
               "tokens need no conversion: name the file in a recipe, train_data = t.data.tokens { path = "
               "'FILE' }"},
};

}  // namespace

const UnreadKind* unread_kind_by_name(const std::string& name) {
  for (const UnreadKind& kind : kUnreadKinds)
    if (name.ends_with(kind.ending)) return &kind;
  return nullptr;
}

const UnreadKind* unread_kind_by_content(std::string_view head) {
  for (const UnreadKind& kind : kUnreadKinds)
    if (!kind.magic.empty() && head.size() >= kind.magic_at &&
        head.substr(kind.magic_at).starts_with(kind.magic))
      return &kind;
  return nullptr;
}

void refuse(const std::string& path, const UnreadKind& kind, bool in_folder) {
  std::string advice(kind.advice);
  for (size_t at = advice.find("FILE"); at != std::string::npos; at = advice.find("FILE", at + path.size()))
    advice.replace(at, 4, path);
  fail(ExitCode::kUnusable, "[data] {} is {}, which is not read here: {}{}", path, kind.name, advice,
       in_folder ? "; or select other files of the folder with --ext" : "");
}

}  // namespace tycho
