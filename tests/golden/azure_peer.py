"""What azure-storage-blob finds in a store that Tycho wrote to, for tests/host/azure_peer.sh.

    python azure_peer.py RUN_FOLDER PLACE

Compares each blob below PLACE with the file of the run folder, reads, replaces and removes blobs of its own in every way that Tycho uses,
and stores the newest checkpoint again, by blocks, as "official/checkpoints/...".
"""

import os
import pathlib
import sys

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, ContainerClient

run, place = pathlib.Path(sys.argv[1]), sys.argv[2]
store = ContainerClient(os.environ["AZURE_STORAGE_SERVICE_ENDPOINT"], "container", credential=os.environ["AZURE_STORAGE_SAS_TOKEN"],
                        max_block_size=1 << 20, max_single_put_size=1 << 20, max_single_get_size=1 << 20, max_chunk_get_size=1 << 20)

# What Tycho wrote. The lease is no file of the run.
blobs = {blob.name: blob for blob in store.list_blobs(name_starts_with=place + "/checkpoints/")}
files = {f"{place}/{path.relative_to(run)}": path for path in (run / "checkpoints").glob("step-*/*") if path.is_file()}
assert blobs.keys() == files.keys() and len(files) == 6, (sorted(blobs), sorted(files))
for name, path in files.items():
    client, text = store.get_blob_client(name), path.read_bytes()
    assert client.download_blob().readall() == text, name
    assert client.get_blob_properties().size == blobs[name].size == len(text), name
    if len(text) > 10:
        assert client.download_blob(offset=3, length=5).readall() == text[3:8], name
assert [page.name for page in store.list_blobs(name_starts_with=place + "/lease/")], "no lease"

# What a store must do, by the official client.
mine = store.get_blob_client("peer/a b+c")
mine.upload_blob(b"one")
try:
    mine.upload_blob(b"two", overwrite=False)
    sys.exit("a blob was replaced that should have stayed")
except ResourceExistsError:
    pass
assert mine.download_blob().readall() == b"one"
etag = mine.get_blob_properties().etag
mine.upload_blob(b"three", overwrite=True)
assert mine.get_blob_properties().etag != etag and mine.download_blob().readall() == b"three"
mine.stage_block("AAAA", b"x" * 100)
mine.stage_block("AAAB", b"y" * 10)
committed, uncommitted = mine.get_block_list("uncommitted")
assert [(block.id, block.size) for block in uncommitted] == [("AAAA", 100), ("AAAB", 10)] and not committed, uncommitted
mine.commit_block_list([BlobBlock("AAAB"), BlobBlock("AAAA")])
assert mine.download_blob().readall() == b"y" * 10 + b"x" * 100
mine.delete_blob()
try:
    mine.get_blob_properties()
    sys.exit("a blob was removed and is there")
except ResourceNotFoundError:
    pass

# A checkpoint for Tycho to read; its COMMIT comes last, as always.
newest = max(path.parent for path in (run / "checkpoints").glob("step-*/COMMIT"))
for path in sorted(newest.iterdir(), key=lambda one: one.name == "COMMIT"):
    with path.open("rb") as file:
        store.upload_blob(f"official/checkpoints/{newest.name}/{path.name}", file)
