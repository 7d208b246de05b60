"""Tell the tests of pure functions, and those that need other projects' readers, from the rest."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
STARTERS = {  # what runs stages or commands, or starts processes, threads and servers
    "dagster",
    "http",
    "moto",
    "multiprocessing",
    "pipeline_defs",
    "resources.engine.map_parts",
    "signal",
    "socket",
    "subprocess",
    "threading",
}
RUNNING_FIXTURES = {"build", "corpus"}
SECONDS_LONG = {  # pure, but they take seconds each: long texts, hundreds of examples
    "test_a_salt_changes_nothing_within_a_source",
    "test_a_shard_is_read_as_it_was_written",
    "test_a_vocabulary_beyond_16_bits_is_said",
    "test_c4_equals_its_plain_twin",
    "test_clusters_equal_the_reference_in_any_order",
    "test_components_equal_the_reference_in_and_out_of_memory",
    "test_counts_are_exact_and_every_block_is_within_two_of_its_share",
    "test_counts_are_those_of_the_reference",
    "test_counts_do_not_depend_on_the_neighbours",
    "test_counts_equal_the_reference",
    "test_counts_of_a_text_beyond_one_block_and_one_table_equal_the_reference",
    "test_counts_of_nasty_texts_equal_the_reference",
    "test_every_preset_judges_every_kind_of_text",
    "test_everything_equals_plain_python",
    "test_hits_equal_the_reference",
    "test_hostile_texts_end_soon",
    "test_how_documents_lie_in_parts_does_not_matter",
    "test_ids_beyond_16_bits_survive",
    "test_members_and_frames_are_read_to_the_last",
    "test_no_document_is_lost_and_filtering_twice_is_once",
    "test_one_line_of_50_megabytes",
    "test_one_megabyte_keeps_what_is_no_span",
    "test_order_does_not_depend_on_how_rows_are_split_into_parts",
    "test_redacting_twice_is_redacting_once",
    "test_refinedweb_equals_its_plain_twin",
    "test_rows_do_not_know_each_other",
    "test_shards_hold_every_sequence_once_and_differ_by_one_row",
    "test_spans_of_any_text_are_ascending_and_inside",
    "test_ten_million_newlines",
    "test_text_outside_the_spans_is_unchanged",
    "test_truncated_stream_gives_what_came_before_and_one_quarantine_row",
    "test_what_is_found_equals_the_definition",
    "test_what_is_found_is_what_decoding_finds",
    "test_what_was_kept_stays_when_generations_are_added",
}
ASK_FOR_A_READER = {"importorskip", "peer"}


@cache
def syntax_of(file: Path) -> list[ast.AST]:
    """Every node of a file's syntax tree."""
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@cache
def imported(file: Path) -> frozenset[str]:
    """Modules that a test file imports anywhere, itself or through the helpers in tests/."""
    names: set[str] = set()
    for node in syntax_of(file):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    helpers = [FOLDER / f"{name}.py" for name in names]
    return frozenset(names).union(*(imported(file) for file in helpers if file.is_file()))


@cache
def starts_something(file: Path) -> bool:
    """Check that a test file imports what runs stages, or asks for another project's reader."""
    names = {name for module in imported(file) for name in (module, module.split(".")[0])}
    in_engine = any(name.startswith("resources.engine.map_parts.") for name in names)
    return in_engine or bool(names & STARTERS) or needs_peers(file)


def is_fast(file: Path, name: str, fixtures: set[str]) -> bool:
    """Check that a test is short, starts nothing, and needs no corpus."""
    runs = name in SECONDS_LONG or bool(fixtures & RUNNING_FIXTURES)
    return not (runs or starts_something(file))


@cache
def needs_peers(file: Path) -> bool:
    """Check that a test file asks for a package that `make peers` installs."""
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in syntax_of(file)}
    return bool(names & ASK_FOR_A_READER)
