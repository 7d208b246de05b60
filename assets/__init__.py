"""The pipeline, one file per stage.

    raw -> filtered -> deduped -> tokenized -> bucketed -> sharded -> mixed

`classifier` is a model that `filtered` may use. `deduped` also holds signatures and duplicates
(one clustering over all sources), `tokenized` also the tokenizer (one for the whole corpus). An
asset reads: which parts, map a function over them, publish, report. The functions themselves are in
`assets/transforms/`, pure.
"""
