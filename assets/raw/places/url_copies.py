"""Copies of the files behind URLs, fetched for those who read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assets.raw.places.downloads import DownloadError, download, has_content
from assets.raw.places.file_digests import AGAIN, SINCE, ChangedFileError, FileDigest
from assets.raw.readers.input_file import InputFile
from resources.errors import InputError
from resources.settings.sources import SourceConfig, identity_of, is_web_url


def fetch_copies(source: SourceConfig, files: Iterable[InputFile], downloads: Path) -> None:
    """Download files of URLs whose copy is gone or damaged; other files need none.

    Raises InputError if one cannot be downloaded, and ChangedFileError if it is not the one that
    was planned with: the next planning sees the new one.
    """
    keys = source.identity_query
    urls = {identity_of(url, keys): url for url in source.where if is_web_url(url)}
    for file in files:
        planned = FileDigest(file.bytes, file.digest, file.blocks)
        url = urls.get(file.name, file.name)  # a file of a crawl is in a list, and not in `where`
        if file.is_remote or not is_web_url(url) or has_content(file.path, planned):
            continue
        try:
            _, now = download(url, file.name, downloads, source.max_download_bytes)
        except DownloadError as error:
            raise InputError(f"source {source.name!r}: {error}", keys) from error
        if now != planned:
            raise ChangedFileError(
                f"{file.name} has changed {SINCE}: {planned.bytes:,} bytes with digest "
                f"{planned.digest} then, {now.bytes:,} bytes with digest {now.digest} now. {AGAIN}"
            )
