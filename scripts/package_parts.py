#!/usr/bin/env python3
"""Writes what scripts/package puts into packages: the wheel's archive, and the list of components (CycloneDX 1.5).

  scripts/package_parts.py wheel STAGE VERSION TORCH_RELEASE OUT
  scripts/package_parts.py hide FOLDER FILE
  scripts/package_parts.py notice DEBIAN_PACKAGES VERSION
  scripts/package_parts.py sbom STAGE DEBIAN_PACKAGES VERSION [DIST_INFO ...]
"""
import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile

NAME = "tycho_lm"


def wheel(stage, version, torch, out):
    """Programs go to the environment's bin, everything else to the same places below its prefix as in an installed tree."""
    info, records = f"{NAME}-{version}.dist-info", []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(content)}")

        for folder, folders, files in os.walk(stage):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(folder, file)
                inside = os.path.relpath(path, stage)
                is_program = inside.startswith("bin/")
                place = f"scripts/{file}" if is_program else f"data/{inside}"
                with open(path, "rb") as opened:
                    add(f"{NAME}-{version}.data/{place}", opened.read(), 0o755 if is_program else 0o644)
        add(f"{info}/METADATA", (
            f"Metadata-Version: 2.1\nName: tycho-lm\nVersion: {version}\nSummary: Trains, finetunes and samples language models\n"
            f"License: MIT; share/doc/tycho/licenses has those of the libraries in this wheel\nRequires-Dist: torch=={torch}.*\n"
            "Description-Content-Type: text/plain\n\n"
            "The command `tycho` trains, finetunes and samples language models: runs are recipes in Lua, training is native code over\n"
            "the LibTorch of the package torch. `tycho init my-model` makes a first recipe. No Python runs.\n").encode())
        add(f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: tycho scripts/package\nRoot-Is-Purelib: false\n"
            b"Tag: py3-none-manylinux_2_34_x86_64\n")
        add(f"{info}/RECORD", "".join(f"{line}\n" for line in [*records, f"{info}/RECORD,,"]).encode())


def hide(folder, file):
    """Replaces the path of the folder with Python's packages by one as long that says nothing about this machine: no string moves."""
    with open(file, "r+b") as opened:
        content, path = opened.read(), folder.encode()
        opened.seek(0)
        opened.write(content.replace(path, b"site-packages".ljust(len(path), b"/")))


def debian_parts(debian):
    """Returns name, version and source package of each Debian package."""
    with open(debian) as names:
        return [subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version} ${source:Package}", package], check=True,
                               capture_output=True, text=True).stdout.split() for package in names.read().split()]


def notice(debian, version):
    rows = "\n".join(f"  {name:24} {its_version:28} {source}" for name, its_version, source in debian_parts(debian))
    print(f"""Licences of the parts of Tycho {version}

Tycho itself is under the MIT licence: the file tycho. Parts of Debian are in it or beside it (lib/tycho/*-tycho.so*), each under
the licence in the file of its name; common-licenses has the texts that those files refer to. Where that is the LGPL (GnuTLS,
GMP, Nettle, libunistring, libidn2, librtmp and others), the library is a file of its own, which you may replace by a changed one of
the same name. Its source is Debian's source package, unchanged but for the names of files inside the binaries:
https://snapshot.debian.org/package/SOURCE/VERSION/

GNU readline, which is under the GPL, is no part of this package. A prompt opens the system's libreadline.so.8 where there is one,
and reads plain lines otherwise.

  package                  version                      source
{rows}""")


def component(kind, name, version, purl):
    return {"type": kind, "name": name, "version": version, "purl": purl}


def sbom(stage, debian, version, *dist_infos):
    parts = []
    for name, its_version, source in debian_parts(debian):
        parts.append(component("library", name, its_version, f"pkg:deb/debian/{name}@{its_version}?arch=amd64&upstream={source}"))
    for folder in dist_infos:
        name, its_version = os.path.basename(folder).removesuffix(".dist-info").split("-")
        parts.append(component("library", name, its_version, f"pkg:pypi/{name.replace('_', '-')}@{its_version}"))
    files = []
    for folder, folders, names in os.walk(stage):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if ".so" in name or folder.endswith("/bin"):
                with open(path, "rb") as opened:
                    digest = hashlib.sha256(opened.read()).hexdigest()
                files.append({"type": "file", "name": os.path.relpath(path, stage), "hashes": [{"alg": "SHA-256", "content": digest}]})
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": component("application", "tycho", version, f"pkg:generic/tycho@{version}")},
        "components": parts + files}, indent=1))


if __name__ == "__main__":
    {"wheel": wheel, "hide": hide, "notice": notice, "sbom": sbom}[sys.argv[1]](*sys.argv[2:])
