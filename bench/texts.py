"""Local text for benchmarks: whole UTF-8 files of a folder."""
import pathlib

HEADERS = "~/.cache/tycho/libtorch-2.11.0/lib/python3.11/site-packages/torch/include"


def add_options(parser):
    parser.add_argument("--text-from", default=HEADERS, help="folder of text")
    parser.add_argument("--endings", default=".h", help="of its files, such as .txt,.rst")
    parser.add_argument("--megabytes", type=float, default=20)


def whole_texts(options):
    """The bytes of one file after another in sorted order, --megabytes of them at most, at least half of that."""
    size, num_bytes = 0, int(options.megabytes * 1e6)
    for file in sorted(pathlib.Path(options.text_from).expanduser().rglob("*")):
        if not file.is_file() or not file.name.endswith(tuple(options.endings.split(","))):
            continue
        text = file.read_bytes()
        try:
            text.decode()
        except UnicodeDecodeError:
            continue
        if size + len(text) > num_bytes:
            break
        yield text
        size += len(text)
    if size < num_bytes / 2:
        raise SystemExit(f"{options.text_from} has only {size} bytes of {options.endings} files; name another folder with --text-from")
