// The table and the choice are those of datasets/packaged_modules and load.py (5.2.0).
#include "trainer/data/splits/data_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace tycho {
namespace {

struct Kind {
  std::string_view name, endings;
};
constexpr std::array kKinds = {
    Kind{"csv", ".csv .tsv"},
    Kind{"json", ".json .jsonl .ndjson"},
    Kind{"parquet", ".parquet .geoparquet .gpq"},
    Kind{"arrow", ".arrow"},
    Kind{"text", ".txt"},
    Kind{"conll", ".conll .conllu"},
    Kind{"webdataset", ".tar"},
    Kind{"xml", ".xml"},
    Kind{"hdf5", ".hdf5 .h5"},
    Kind{"eval", ".eval"},
    Kind{"harbor", ".toml .md"},
    Kind{"lance", ".lance .idx .txn .manifest"},
    Kind{"tsfile", ".tsfile"},
    Kind{"vortex", ".vortex"},
    Kind{"fasta", ".fa .fasta .fna .ffn .faa .frn .afa"},
    Kind{"genbank", ".gb .gbk .genbank"},
    Kind{"fastq", ".fq .fastq"},
    Kind{"pdb", ".pdb .ent"},
    Kind{"mmcif", ".cif .mmcif"},
    Kind{"imagefolder",
         ".blp .bmp .dib .bufr .cur .pcx .dcx .dds .ps .eps .fit .fits .fli .flc .ftc .ftu .gbr .gif .grib "
         ".png .apng .jp2 .j2k .jpc .jpf .jpx .j2c .icns .ico .im .iim .tif .tiff .jfif .jpe .jpg .jpeg .msp "
         ".pcd .pxr .pbm .pgm .ppm .pnm .psd .bw .rgb .rgba .sgi .ras .tga .icb .vda .vst .webp .wmf .emf "
         ".xbm .xpm"},
    Kind{"audiofolder",
         ".mpg .aiff .au .avr .caf .flac .htk .svx .mat4 .mat5 .mpc2k .ogg .paf .pvf .raw .rf64 .sd2 .sds "
         ".ircam .voc .w64 .wav .nist .wavex .wve .xi .mp3 .opus .3gp .3g2 .asf .flv .m4v .webm .f4v .wmv "
         ".wma .ogm .mxf .nut"},
    Kind{"videofolder", ".mpeg .avi .mp4 .mov .mkv"},
    Kind{"meshfolder", ".glb .gltf .ply .stl"},
    Kind{"pdffolder", ".pdf"},
    Kind{"niftifolder", ".nii"},
    Kind{"archive", ".zip"}};
/// Endings that win where as many files have them as another, from the weakest.
constexpr std::array<std::string_view, 7> kFavorites = {".csv",    ".json",  ".jsonl",  ".arrow",
                                                        ".vortex", ".lance", ".parquet"};
/// Names of tables that describe images and the like: they decide only where nothing else does.
constexpr std::array<std::string_view, 3> kTables = {"metadata.csv", "metadata.jsonl", "metadata.parquet"};

bool has_ending(std::string_view endings, std::string_view ending) {
  for (size_t at = endings.find(ending); at != endings.npos; at = endings.find(ending, at + 1)) {
    const size_t end = at + ending.size();
    if (end == endings.size() || endings[end] == ' ') return true;
  }
  return false;
}

std::string_view kind_of(std::string_view ending) {
  for (const Kind& kind : kKinds)
    if (has_ending(kind.endings, ending)) return kind.name;
  return "";
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Calls `use` with every part of a name that follows a dot, with its dot.
template <class Use>
void for_each_ending(std::string_view path, const Use& use) {
  const std::string_view name = name_of(path);
  for (size_t dot = name.find('.'); dot != name.npos;) {
    const size_t next = name.find('.', dot + 1);
    use(name.substr(dot, next == name.npos ? next : next - dot));
    dot = next;
  }
}

}  // namespace

std::string main_kind(const std::vector<std::string>& files) {
  std::map<std::pair<std::string, bool>, int64_t> counts;
  for (const std::string& file : files) {
    const bool is_table = std::find(kTables.begin(), kTables.end(), name_of(file)) != kTables.end();
    for_each_ending(file, [&](std::string_view ending) { ++counts[{lower_case(ending), is_table}]; });
  }
  using Rank = std::tuple<bool, int64_t, std::ptrdiff_t, std::string>;
  Rank best;
  for (const auto& [key, count] : counts) {
    if (kind_of(key.first).empty() || key.first == ".") continue;
    const auto* const favorite = std::find(kFavorites.begin(), kFavorites.end(), key.first);
    const std::ptrdiff_t rank = favorite == kFavorites.end() ? 0 : favorite - kFavorites.begin() + 1;
    best = std::max(best, Rank{!key.second, count, rank, key.first});
  }
  return std::get<3>(best).empty() ? "" : std::string(kind_of(std::get<3>(best)));
}

bool is_of_kind(const std::string& path, const std::string& kind) {
  const auto* const found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& one) { return one.name == kind; });
  if (found == kKinds.end()) return false;
  for (std::string_view endings : {found->endings, std::string_view(".zip")})
    while (!endings.empty()) {
      const std::string_view ending = endings.substr(0, endings.find(' '));
      endings.remove_prefix(std::min(endings.size(), ending.size() + 1));
      for (size_t at = path.find(ending); at != path.npos; at = path.find(ending, at + 1)) {
        const size_t end = at + ending.size();
        if (end == path.size() || (path[end] == '.' && end + 1 < path.size())) return true;
      }
    }
  return false;
}

bool is_data_by_name(const std::string& path) {
  bool found = false;
  for_each_ending(path, [&](std::string_view ending) { found |= !kind_of(ending).empty(); });
  return found;
}

}  // namespace tycho
