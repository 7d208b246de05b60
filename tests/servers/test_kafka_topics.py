"""Topics of Kafka, by the protocol that the mock brokers of librdkafka speak."""

from collections.abc import Sequence

from builders import Build, open_corpus, published, sentence, write_corpus
from prelude import Any, Iterator, Path, json, pytest

PARTITIONS = 4  # of a topic that the mock brokers make


class Brokers:
    """Two brokers, which end with their producer."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        quiet = {"bootstrap.servers": "", "log_level": 0}
        self.producer = Producer({"test.mock.num.brokers": 2, **quiet})
        brokers = self.producer.list_topics(timeout=20).brokers.values()
        self.name = f"kafka://{','.join(f'{each.host}:{each.port}' for each in brokers)}/docs"

    def add(self, values: Sequence[bytes]) -> None:
        """Append messages to the partitions in turn."""
        for index, value in enumerate(values):
            self.producer.produce("docs", value, partition=index % PARTITIONS)
        self.producer.flush()


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Brokers of this test."""
    yield Brokers()


def topic_corpus(folder: Path, brokers: Brokers, **options: Any) -> Any:
    """A corpus of one topic."""
    topic = {"name": "topic", "where": brokers.name, **options}
    phases = [{"name": "main", "weights": {"topic": 1}}]
    engine = {"kind": "in_process"}
    changes = {"sources": [topic], "phases": phases, "part_bytes": 2048, "engine": engine}
    return open_corpus(write_corpus(folder, **changes))


def messages(first: int, number: int) -> list[bytes]:
    """Values of messages."""
    return [json.dumps({"text": sentence(i)}).encode() for i in range(first, first + number)]


def test_each_night_takes_the_new_messages_of_every_partition(
    tmp_path: Path, brokers: Brokers, build: Build
) -> None:
    corpus = topic_corpus(tmp_path, brokers)
    brokers.add(messages(0, 50))
    build(corpus, "raw")
    first = published(corpus, "topic")
    brokers.add(messages(50, 43))

    build(corpus, "raw")

    both = published(corpus, "topic")
    assert sorted(both["text"]) == sorted(sentence(i) for i in range(93))
    assert first.join(both, on=["doc_id", "text"], how="anti").is_empty()
    origins = both["origin"].struct.unnest()
    assert sorted(set(origins["file"])) == [f"{brokers.name}/{i}" for i in range(PARTITIONS)]
    rows = origins.group_by("file").agg("row").sort("file")["row"].to_list()
    assert rows == [[*range(24)], [*range(24)], [*range(23)], [*range(22)]]


def test_a_topic_with_a_limit_goes_on_behind_it(
    tmp_path: Path, brokers: Brokers, build: Build
) -> None:
    corpus = topic_corpus(tmp_path, brokers, max_entries=5)
    brokers.add(messages(0, 32))
    counts = []
    for _ in range(3):
        build(corpus, "raw")
        counts.append(published(corpus, "topic").height)

    assert counts == [20, 32, 32]


def test_messages_without_json_are_in_quarantine_by_offset(
    tmp_path: Path, brokers: Brokers, build: Build
) -> None:
    corpus = topic_corpus(tmp_path, brokers)
    brokers.add([*messages(0, 4), b"no json", b"", b'{"title": 1}'])

    build(corpus, "raw")

    quarantine = published(corpus, "topic", "quarantine")
    assert quarantine["position"].to_list() == ["offset 1"] * 3
    assert published(corpus, "topic").height == 4


def test_a_topic_that_is_not_there_is_an_error(
    tmp_path: Path, brokers: Brokers, build: Build
) -> None:
    with pytest.raises(Exception, match="has no entries"):
        build(topic_corpus(tmp_path, brokers), "raw")
