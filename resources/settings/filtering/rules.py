"""Groups of rules, one per paper or purpose: every threshold with its default and its source.

The field of a threshold names the score that it limits and the fault that it finds. The prefix is
the direction: a fault is below a `min_`, above a `max_`, outside `allowed`, inside `blocked_`, and
above 0 for a flag. A document at the threshold is kept, unless the group is `inclusive`. A number
may be a mapping by language instead (`limits`).
Thresholds and their sources are compared across papers and programs in docs/quality.md.
This is the one table of rules. To add one, add a field with a score of `assets.filtered.scores`
(CONTRIBUTING.md has an example); rules of files and packages are `assets.filtered.rules.custom`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from resources.settings.frozen_model import FrozenModel
from resources.settings.limits import Amount, Count, Share

# Crawlers that collect texts to train models, or names by which sites tell them not to.
AI_AGENTS = (
    *("GPTBot", "CCBot", "Google-Extended", "anthropic-ai", "ClaudeBot", "Applebot-Extended"),
    *("Bytespider", "cohere-ai", "Meta-ExternalAgent", "Amazonbot", "AI2Bot", "Diffbot"),
)

# The eight words of Gopher's stop-word rule.
STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")


def _limit(default: Any, fault: str, score: str) -> Any:
    """Return the field of one rule: its threshold, the fault it finds and the score it limits."""
    names = {"fault": fault, "score": score}
    description = f"limit of {score}; beyond it the document is rejected for {fault}"
    return Field(default, description=description, json_schema_extra={**names})


def _lower(names: object) -> object:
    if not isinstance(names, list | tuple):
        return names
    return tuple(name.strip().lower() if isinstance(name, str) else name for name in names)


LOWER = BeforeValidator(_lower, json_schema_input_type=tuple[str, ...])
LowerNames = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], LOWER]
UrlWords = Annotated[tuple[Annotated[str, Field(pattern="^[a-z0-9]+$")], ...], LOWER]
AgentName = Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9_-]+)$")]  # a product token, RFC 9309
FieldPath = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
Word = Annotated[str, Field(pattern=r"^\S+$")]


class RuleGroup(FrozenModel):
    """Thresholds in rule order; null (for a flag: false) switches a rule off."""

    inclusive: bool = Field(default=False, description="rejects a document at a threshold")


class CountedRules(RuleGroup):
    """Rules whose scores datatrove counts differently: words, lines, copies, what they divide by.

    Names of scores are the same for both; docs/quality.md, section 2, has the definitions.
    """

    counting: Literal["own", "datatrove"] = Field(
        default="own", description="whose definitions of the scores hold: ours, or datatrove's"
    )


class LengthRules(RuleGroup):
    """Bounds on the length after the corrections of `lines`; the defaults drop empty texts only."""

    min_chars: Count = _limit(1, "too_short", "char_count")
    max_chars: Count = _limit(None, "too_long", "char_count")
    min_words: Count = _limit(None, "too_few_words", "edited_word_count")
    max_words: Count = _limit(None, "too_many_words", "edited_word_count")


class MetadataRules(RuleGroup):
    """Metadata of the text: licence, URL, and required fields.

    A blocked or allowed domain includes its subdomains. Words of a URL are its runs of ASCII
    letters and digits. RefinedWeb (arXiv 2306.01116, G.1): one word of a strict list anywhere in
    the URL, one hard word, or two soft words reject.
    """

    allowed_licenses: LowerNames | None = _limit(None, "license_not_allowed", "license")
    blocked_licenses: LowerNames | None = _limit(None, "license_blocked", "license")
    required: tuple[FieldPath, ...] = Field(
        default=(),
        description="fields of the record (author, meta.author), or the columns url, license, lang "
        "and id, that must not be missing or empty",
    )
    missing: bool = _limit(True, "missing_field", "missing_fields")
    blocked_domains: tuple[str, ...] = Field(default=(), description="domains to reject")
    blocked_domains_file: str | None = Field(
        default=None, description="file with one domain or URL per line to reject (# comments)"
    )
    blocked: bool = _limit(True, "domain_blocked", "blocked_domain")
    allowed_domains: tuple[str, ...] = Field(
        default=(), description="only domains of documents with a URL; empty: all"
    )
    allowed_domains_file: str | None = Field(
        default=None, description="file with one allowed domain per line (# comments)"
    )
    outside: bool = _limit(True, "domain_not_allowed", "foreign_domain")
    url_substrings: LowerNames = Field(default=(), description="strict list: anywhere in the URL")
    url_words: UrlWords = Field(default=(), description="hard list: whole words of the URL")
    url_soft_words: UrlWords = Field(
        default=(), description="soft list: several words must come together"
    )
    url: bool = _limit(True, "url_blocked", "url_hits")
    max_url_soft_words: Count = _limit(1, "url_suspicious", "url_soft_hits")


class OptOutRules(RuleGroup):
    """Sites that ask not to be trained on: lists, snapshots of robots.txt and ai.txt, headers.

    A listed domain includes its subdomains. Of each site the newest snapshots count, whenever a
    document was fetched; a change of a list or snapshot filters again the parts that it concerns.
    """

    domains: tuple[str, ...] = Field(default=(), description="domains or URLs that are opted out")
    domains_file: str | None = Field(
        default=None, description="file with one domain or URL per line (# comments)"
    )
    snapshots: str | None = Field(
        default=None,
        description="JSON lines, or a folder of them, with url, date, sha256 and text of each "
        "robots.txt and ai.txt",
    )
    agents: tuple[AgentName, ...] = Field(
        default=AI_AGENTS,
        min_length=1,
        description="names of crawlers; a page that one of them may not fetch, or not use for "
        "training, is opted out; *: those that a file does not name",
    )
    tracking_parameters: tuple[str, ...] | None = Field(
        default=None,
        description="parameters that make no other page of a listed URL; null: those of `urls`",
    )
    opted_out: bool = _limit(True, "opted_out", "opted_out")


class ExpectedLanguageRules(RuleGroup):
    """Texts that are surely in another language than those of their source (`require_language`)."""

    required: bool = _limit(False, "other_language", "other_language")


class LanguageRules(RuleGroup):
    """Certainty of the detector (FineWeb: 0.65), and languages.

    `allowed` is compared with the declared language, or the detected one if none is declared, and
    `allowed_detected` always with the detected one.
    """

    min_score: Share = _limit(0.65, "uncertain", "lang_score")
    allowed: LowerNames | None = _limit(None, "not_allowed", "lang")
    allowed_detected: LowerNames | None = _limit(None, "not_detected", "detected_lang")
    min_paragraph_share: Share = _limit(None, "mixed_languages", "paragraph_lang_share")


class GopherQualityRules(CountedRules):
    """Rae et al. 2021 (arXiv 2112.11446), appendix A1: for English."""

    min_words: Count = _limit(50, "too_few_words", "word_count")
    max_words: Count = _limit(100_000, "too_many_words", "word_count")
    min_mean_word_length: Amount = _limit(3.0, "words_too_short", "mean_word_length")
    max_mean_word_length: Amount = _limit(10.0, "words_too_long", "mean_word_length")
    max_hash_ratio: Amount = _limit(0.1, "too_many_hashes", "hash_ratio")
    max_ellipsis_ratio: Amount = _limit(0.1, "too_many_ellipses", "ellipsis_ratio")
    max_bullet_lines: Share = _limit(0.9, "too_many_bullet_lines", "bullet_line_share")
    max_ellipsis_lines: Share = _limit(0.3, "too_many_ellipsis_lines", "ellipsis_line_share")
    min_alphabetic_words: Share = _limit(0.8, "too_few_alphabetic_words", "alphabetic_word_share")
    min_stop_words: Count = _limit(2, "too_few_stop_words", "stop_word_count")
    stop_words: tuple[Word, ...] = Field(
        default=STOP_WORDS,
        description="words of which some must occur; in any case, for datatrove as written",
    )


class GopherRepetitionRules(CountedRules):
    """Rae et al. 2021, table A1: repeated lines, paragraphs and word n-grams.

    `duplicate` counts the copies after the first (datatrove, NeMo). `repeated` counts all copies of
    a line or paragraph that occurs more than once (DCLM, dolma), and is off by default.
    """

    max_duplicate_lines: Share = _limit(0.3, "duplicate_lines", "duplicate_line_share")
    max_duplicate_paragraphs: Share = _limit(
        0.3, "duplicate_paragraphs", "duplicate_paragraph_share"
    )
    max_duplicate_line_chars: Share = _limit(
        0.2, "duplicate_line_text", "duplicate_line_char_share"
    )
    max_duplicate_paragraph_chars: Share = _limit(
        0.2, "duplicate_paragraph_text", "duplicate_paragraph_char_share"
    )
    max_top_2_gram: Share = _limit(0.2, "top_2_gram", "top_2_gram_char_share")
    max_top_3_gram: Share = _limit(0.18, "top_3_gram", "top_3_gram_char_share")
    max_top_4_gram: Share = _limit(0.16, "top_4_gram", "top_4_gram_char_share")
    max_duplicate_5_gram: Share = _limit(0.15, "duplicate_5_gram", "duplicate_5_gram_char_share")
    max_duplicate_6_gram: Share = _limit(0.14, "duplicate_6_gram", "duplicate_6_gram_char_share")
    max_duplicate_7_gram: Share = _limit(0.13, "duplicate_7_gram", "duplicate_7_gram_char_share")
    max_duplicate_8_gram: Share = _limit(0.12, "duplicate_8_gram", "duplicate_8_gram_char_share")
    max_duplicate_9_gram: Share = _limit(0.11, "duplicate_9_gram", "duplicate_9_gram_char_share")
    max_duplicate_10_gram: Share = _limit(0.10, "duplicate_10_gram", "duplicate_10_gram_char_share")
    max_repeated_lines: Share = _limit(None, "repeated_lines", "repeated_line_share")
    max_repeated_paragraphs: Share = _limit(None, "repeated_paragraphs", "repeated_paragraph_share")
    max_repeated_line_chars: Share = _limit(None, "repeated_line_text", "repeated_line_char_share")
    max_repeated_paragraph_chars: Share = _limit(
        None, "repeated_paragraph_text", "repeated_paragraph_char_share"
    )


class C4Rules(CountedRules):
    """Raffel et al. 2020 (arXiv 1910.10683), section 2.2: the rules on whole pages.

    Lorem ipsum, brackets and sentences count in the lines that `lines.c4` keeps; without it, in all
    lines. Bad words count in the text before. For "javascript" and policy phrases C4 drops the line
    only (`lines.c4`): as rules they are off.
    """

    lorem_ipsum: bool = _limit(True, "lorem_ipsum", "lorem_ipsum_lines")
    curly_bracket: bool = _limit(True, "curly_bracket", "curly_bracket_lines")
    javascript: bool = _limit(False, "javascript", "javascript_lines")
    policy: bool = _limit(False, "policy", "policy_lines")
    min_sentences: Count = _limit(None, "too_few_sentences", "sentence_count")
    bad_words: bool = _limit(False, "bad_words", "profane_words")


class FinewebRules(CountedRules):
    """Penedo et al. 2024 (arXiv 2406.17557), section 3.6, on the text that `lines` leaves.

    Defaults and comparisons are datatrove's; the paper rejects at the threshold and has 0.1 for
    characters in duplicate lines (preset fineweb-paper).
    """

    min_terminal_punctuation_lines: Share = _limit(
        0.12, "too_few_finished_lines", "terminal_line_share"
    )
    max_short_lines: Share = _limit(0.67, "too_many_short_lines", "short_line_share")
    max_duplicate_chars: Share = _limit(0.01, "duplicate_text", "duplicate_char_share")
    max_list_ratio: Amount = _limit(0.3, "list_like", "list_ratio")


class RefinedWebRules(RuleGroup):
    """Penedo et al. 2023 (arXiv 2306.01116), G.2: share of words removed by line corrections."""

    max_removed_words: Share = _limit(0.05, "mostly_boilerplate", "removed_word_share")


class PageRules(RuleGroup):
    """Page furniture of the web, and repetition in windows of 128 words.

    The first six limit the likelihood of each kind of junk by the form of the page.
    """

    max_boilerplate: Share = _limit(0.14, "boilerplate", "boilerplate_score")
    max_navigation: Share = _limit(0.5, "navigation", "navigation_score")
    max_keyword_spam: Share = _limit(0.2, "keyword_spam", "keyword_spam_score")
    max_link_lists: Share = _limit(0.2, "link_list", "link_lists_score")
    max_machine_noise: Share = _limit(0.45, "machine_noise", "machine_noise_score")
    max_truncated: Share = _limit(0.7, "truncated", "truncated_pages_score")
    max_repeated: Share = _limit(0.33, "repeated_in_windows", "window_repeated_share")
    min_distinct: Share = _limit(0.33, "few_distinct_words", "window_distinct_share")


class CodeRules(RuleGroup):
    """Source files: Li et al. 2023 (StarCoder, arXiv 2305.06161), section 3; NeMo Curator.

    A score of a language or kind of file is null for others, and a null breaks no rule.
    """

    max_line_length: Count = _limit(1000, "line_too_long", "longest_line")
    max_mean_line_length: Amount = _limit(100.0, "mean_line_too_long", "mean_line_length")
    min_alphanumeric: Share = _limit(0.25, "too_few_alphanumerics", "alphanumeric_share")
    min_alphabetic: Share = _limit(None, "too_few_letters", "alphabetic_share")
    min_letters_per_token: Amount = _limit(None, "too_many_symbols", "letters_per_token")
    min_comments: Share = _limit(None, "too_few_comments", "comment_share")
    max_comments: Share = _limit(None, "too_many_comments", "comment_share")
    min_code_lines: Count = _limit(None, "too_few_lines", "code_lines")
    max_code_lines: Count = _limit(None, "too_many_lines", "code_lines")
    min_indented: Share = _limit(None, "not_indented", "indented_line_share")
    min_keywords: Share = _limit(None, "too_few_keywords", "keyword_share")
    max_punctuation: Share = _limit(None, "too_much_punctuation", "punctuation_share")
    generated: bool = _limit(False, "auto_generated", "is_generated")
    xml: bool = _limit(False, "xml", "is_xml_head")
    min_visible_html: Share = _limit(None, "html_markup", "visible_html_share")
    min_visible_html_chars: Count = _limit(None, "html_empty", "visible_html_chars")
    min_data_chars: Count = _limit(None, "data_file_too_small", "data_file_chars")
    max_data_chars: Count = _limit(None, "data_file_too_large", "data_file_chars")
    max_encoded: Share = _limit(None, "encoded_data", "encoded_share")


class CodeContentRules(RuleGroup):
    """Source code in any text, without its name or language (assets/filtered/code_score.py).

    A maximum keeps code out of prose, a minimum keeps prose out of code; both are off by default.
    """

    max_score: Share = _limit(None, "is_code", "code_score")
    min_score: Share = _limit(None, "not_code", "code_score")


class MedicalRules(RuleGroup):
    """Share of the text in the vocabulary (`words.vocabulary_file`), and its categories."""

    min_density: Share = _limit(0.01, "too_few_terms", "vocabulary_density")
    min_categories: Count = _limit(2, "too_few_categories", "vocabulary_categories")


class ProfanityRules(RuleGroup):
    """Words of the lists that `words` names, as a share of all words, and their number."""

    max_density: Share = _limit(0.005, "profane", "profanity_density")
    max_words: Count = _limit(None, "too_many_profane_words", "profane_words")


class CopyrightRules(RuleGroup):
    """Lines with a copyright notice; `lines.remove_copyright` takes the line instead."""

    notice: bool = _limit(True, "notice", "copyright_notices_left")


class PiiRules(RuleGroup):
    """Personal data (`pii`): spans per word, and spans in all (dolma drops above 5)."""

    max_density: Share = _limit(0.05, "too_dense", "pii_density")
    max_spans: Count = _limit(None, "too_many_spans", "pii_total")


class QualityRules(RuleGroup):
    """Scores of the classifier trained here (`classifier`) and of a fastText model (`fasttext`).

    DCLM-baseline keeps scores of its fastText model from 0.018112. The percentile (0 to 1) ranks a
    document within its source and language, by the classifier's score, or by the fastText score if
    `min_score` is null. A `min_percentile` of 0.4 rejects the lowest 40 %; 0 rejects nothing, and
    stores the percentile.
    """

    min_score: Share = _limit(0.5, "low_quality", "quality_score")
    min_fasttext_score: Share = _limit(None, "low_fasttext_score", "fasttext_score")
    min_percentile: Share = _limit(None, "low_percentile", "quality_percentile")


class RulesConfig(FrozenModel):
    """Groups of rules in force; null switches a group off."""

    length: LengthRules | None = Field(default=LengthRules(), description="characters and words")
    metadata: MetadataRules | None = Field(default=None, description="licence, URL, fields")
    opt_out: OptOutRules | None = Field(
        default=None,
        exclude_if=lambda group: group is None,  # configs without it keep their fingerprints
        description="sites that ask not to be trained on",
    )
    language: LanguageRules | None = Field(
        default=None, description="certainty and choice of languages"
    )
    expected_language: ExpectedLanguageRules | None = Field(
        default=None, description="language of the source, set by its `require_language`"
    )
    gopher_quality: GopherQualityRules | None = Field(
        default=None, description="signs of English prose"
    )
    gopher_repetition: GopherRepetitionRules | None = Field(
        default=None, description="repetition within a document"
    )
    c4: C4Rules | None = Field(default=None, description="boilerplate of web pages")
    fineweb: FinewebRules | None = Field(default=None, description="lists and unfinished lines")
    refinedweb: RefinedWebRules | None = Field(
        default=None, description="pages that are mostly interface"
    )
    page: PageRules | None = Field(
        default=None, description="menus, spam, noise and cut pages; repetition in windows"
    )
    code: CodeRules | None = Field(default=None, description="minified and generated source files")
    code_content: CodeContentRules | None = Field(
        default=None, description="source code in prose, or prose in source code"
    )
    medical: MedicalRules | None = Field(default=None, description="medical vocabulary")
    profanity: ProfanityRules | None = Field(default=None, description="profane words")
    copyright: CopyrightRules | None = Field(default=None, description="copyright notices")
    pii: PiiRules | None = Field(default=None, description="personal data")
    quality: QualityRules | None = Field(default=None, description="classifiers")
    custom: dict[str, float | None] = Field(
        default_factory=dict,
        description="thresholds of custom rules that differ from their file; null: off",
    )
