-- The queries behind the facts of `corpus disclose`: name of the fact, stages whose manifests are read,
-- query. Tables are those of corpus_tables.py. Rows have an order, single values have none.

-- corpus.documents: bucketed sharded
SELECT SUM(documents) FROM fates WHERE fate = 'in training shards';
-- corpus.text_bytes: filtered deduped bucketed sharded
SELECT SUM(bytes) FROM documents;
-- corpus.tokens: bucketed sharded
SELECT SUM(tokens) FROM fates WHERE fate = 'in training shards';
-- corpus.fates: raw filtered deduped tokenized bucketed sharded
SELECT fate, SUM(documents) AS documents, SUM(tokens) AS tokens FROM fates
GROUP BY fate ORDER BY documents DESC, fate;
-- corpus.languages: deduped bucketed sharded
SELECT language, SUM(bytes) AS bytes, SUM(tokens) AS tokens FROM documents
WHERE NOT is_code GROUP BY language ORDER BY bytes DESC, language;
-- corpus.code_languages: deduped bucketed sharded
SELECT language, SUM(bytes) AS bytes, SUM(tokens) AS tokens FROM documents
WHERE is_code GROUP BY language ORDER BY bytes DESC, language;
-- corpus.drawn: mixed
SELECT phase, SUM(realised_tokens) AS tokens FROM mix GROUP BY phase ORDER BY phase;
-- corpus.fitted: mixed
SELECT phase, ratios, metrics FROM fitted ORDER BY phase;

-- crawled.num_domains: deduped bucketed sharded
SELECT COUNT(DISTINCT domain) FROM documents WHERE domain IS NOT NULL AND domain != '{none}';
-- crawled.without_domain: deduped bucketed sharded
SELECT SUM(documents) FROM documents WHERE domain = '{none}';
-- crawled.domains: filtered deduped bucketed sharded
SELECT domain, SUM(documents) AS documents, SUM(bytes) AS bytes FROM documents
WHERE domain IS NOT NULL AND domain != '{none}'
GROUP BY domain ORDER BY bytes DESC, domain LIMIT {most};

-- sources.{source}.records: raw
SELECT SUM(documents) FROM fates WHERE source = '{source}';
-- sources.{source}.documents: bucketed sharded
SELECT SUM(documents) FROM fates WHERE source = '{source}' AND fate = 'in training shards';
-- sources.{source}.text_bytes: filtered deduped bucketed sharded
SELECT SUM(bytes) FROM documents WHERE source = '{source}';
-- sources.{source}.tokens: bucketed sharded
SELECT SUM(tokens) FROM fates WHERE source = '{source}' AND fate = 'in training shards';
-- sources.{source}.languages: deduped bucketed sharded
SELECT language, SUM(bytes) AS bytes, SUM(tokens) AS tokens FROM documents WHERE source = '{source}'
GROUP BY language ORDER BY bytes DESC, language;
-- sources.{source}.licenses: deduped bucketed sharded
SELECT license, SUM(documents) AS documents FROM documents WHERE source = '{source}'
GROUP BY license ORDER BY documents DESC, license LIMIT 100;
-- sources.{source}.removed: raw filtered deduped tokenized bucketed sharded
SELECT reason, SUM(documents) AS documents FROM fates
WHERE source = '{source}' AND fate NOT IN ('not a document', 'in training shards')
GROUP BY reason ORDER BY documents DESC, reason;
-- sources.{source}.cut: deduped bucketed
SELECT cut, amount FROM cuts WHERE source = '{source}' ORDER BY cut;
-- sources.{source}.contaminated: deduped
SELECT evaluation_set, documents FROM contaminated
WHERE source = '{source}' AND documents > 0 ORDER BY documents DESC, evaluation_set;
-- sources.{source}.drawn: mixed
SELECT phase, realised_tokens AS tokens, epochs FROM mix WHERE source = '{source}' ORDER BY phase;
