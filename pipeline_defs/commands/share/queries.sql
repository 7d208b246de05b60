-- The queries behind the facts of `corpus disclose`: name of the fact, stages whose manifests are read,
-- query. Tables are those of published_tables.py. Rows have an order, single values have none.

-- corpus.documents: deduped
SELECT SUM(rows_kept) FROM manifests WHERE stage = 'deduped';
-- corpus.text_bytes: deduped
SELECT SUM(bytes) FROM manifests WHERE stage = 'deduped';
-- corpus.tokens: tokenized
SELECT SUM(tokens) FROM manifests WHERE stage = 'tokenized';
-- corpus.languages: tokenized
SELECT language, SUM(bytes) AS bytes, SUM(tokens) AS tokens FROM languages
WHERE NOT is_code GROUP BY language ORDER BY bytes DESC, language;
-- corpus.code_languages: tokenized
SELECT language, SUM(bytes) AS bytes, SUM(tokens) AS tokens FROM languages
WHERE is_code GROUP BY language ORDER BY bytes DESC, language;
-- corpus.drawn: mixed
SELECT phase, SUM(tokens) AS tokens FROM mix GROUP BY phase ORDER BY phase;

-- crawled.num_domains: deduped
SELECT COUNT(DISTINCT domain) FROM documents WHERE domain IS NOT NULL AND domain != '{none}';
-- crawled.without_domain: deduped
SELECT SUM(documents) FROM documents WHERE domain = '{none}';
-- crawled.domains: deduped
SELECT domain, SUM(documents) AS documents, SUM(bytes) AS bytes FROM documents
WHERE domain IS NOT NULL AND domain != '{none}'
GROUP BY domain ORDER BY bytes DESC, domain LIMIT {most};

-- sources.{source}.records: raw
SELECT rows_in FROM manifests WHERE stage = 'raw' AND partition = '{source}';
-- sources.{source}.documents: deduped
SELECT rows_kept FROM manifests WHERE stage = 'deduped' AND partition = '{source}';
-- sources.{source}.text_bytes: deduped
SELECT bytes FROM manifests WHERE stage = 'deduped' AND partition = '{source}';
-- sources.{source}.tokens: tokenized
SELECT tokens FROM manifests WHERE stage = 'tokenized' AND partition = '{source}';
-- sources.{source}.languages: tokenized
SELECT language, bytes, tokens FROM languages WHERE source = '{source}' ORDER BY bytes DESC, language;
-- sources.{source}.licenses: deduped
SELECT license, SUM(documents) AS documents FROM documents WHERE source = '{source}'
GROUP BY license ORDER BY documents DESC, license LIMIT 100;
-- sources.{source}.removed: filtered deduped
SELECT reason, documents FROM removed WHERE source = '{source}' ORDER BY documents DESC, reason;
-- sources.{source}.contaminated: deduped
SELECT evaluation_set, documents FROM contaminated WHERE source = '{source}'
ORDER BY documents DESC, evaluation_set;
-- sources.{source}.drawn: mixed
SELECT phase, tokens, epochs FROM mix WHERE source = '{source}' ORDER BY phase;
