"""The names of the stages, in the order of the flow: each is a folder of a store, and an asset.

Nothing is imported here: who needs no more than a name waits for no more.
"""

RAW = "raw"
CLASSIFIER = "classifier"
QUALITY_SCALE = "quality_scale"
FILTERED = "filtered"
EVALUATION = "evaluation"
SIGNATURES = "signatures"
BAND_INDEX = "band_index"
DUPLICATES = "duplicates"
REPEATED = "repeated"
SUBSTRINGS = "substrings"
DEDUPED = "deduped"
ANNOTATORS = "annotators"
ASKED = "asked"
ANNOTATION_MODELS = "annotation_models"
ANNOTATED = "annotated"
TOKENIZER = "tokenizer"
TOKENIZED = "tokenized"
HELD_OUT = "held_out"
LEAKAGE = "leakage"
BUCKETED = "bucketed"
SHARDED = "sharded"
MIXED = "mixed"

# With a partition for each source, with one for all of them, and with one for each phase.
SOURCE_STAGES = (
    *(RAW, QUALITY_SCALE, FILTERED, SIGNATURES, REPEATED, DEDUPED, ANNOTATED, TOKENIZED),
    *(BUCKETED, SHARDED),
)
GLOBAL_STAGES = (
    *(CLASSIFIER, EVALUATION, BAND_INDEX, DUPLICATES, SUBSTRINGS, ANNOTATORS, ASKED),
    *(ANNOTATION_MODELS, TOKENIZER, HELD_OUT, LEAKAGE),
)
PHASE_STAGES = (MIXED,)
CHAIN = (SHARDED, BUCKETED, TOKENIZED, DEDUPED, FILTERED, RAW)  # each is made of the next
