"""The stages, a folder each, in the order of the flow.

    raw -> filtered -> deduped -> tokenized -> bucketed -> sharded -> mixed

`filtered` also holds the asset `classifier`; `deduped` the assets `evaluation`, `signatures`,
`band_index`, `duplicates`, `repeated` and `substrings` (one clustering over all sources);
`tokenized` the asset `tokenizer` (one for the whole corpus). `stages.py` lists all of them.
`text` and `report` are shared by the stages.

In a stage's folder only `asset.py`, `*_asset.py`, `*_files.py` and the folders `places`, `readers`
and `formats` touch the disk; all other modules are pure: frames and arrays in, frames and arrays
out.
"""
