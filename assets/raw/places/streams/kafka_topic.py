"""Topics of Kafka: kafka://broker1,broker2/topic, a log for each partition.

Tested with the mock brokers of librdkafka only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from assets.raw.places.streams.logs import OPEN, Entry, LogStatus, StreamError
from corpus_loader.places.urls import Url
from resources.errors import InputError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

SECONDS = 30.0  # for an answer
FIELD = b"json"  # of an entry: the value of its message
CHECK = "Start the brokers, or correct `where`."
OPTIONS = ("security.protocol", "sasl.mechanism", "ssl.ca.location")  # in the query of the URL


def consumer_of(url: str) -> Consumer:
    """Return a consumer that commits nothing; `url` has the values of its variables."""
    try:
        from confluent_kafka import Consumer
    except ImportError as error:
        raise InputError(f"where kafka://: {error}. Run: pip install tokenmill[kafka]") from error
    parts = Url(url)
    config: dict[str, Any] = {
        "bootstrap.servers": parts.host,
        "group.id": "tokenmill",  # the client wants one; nothing is committed to it
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    if parts.user:
        user, _, password = parts.user.partition(":")
        config |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
        config |= {"sasl.username": unquote(user), "sasl.password": unquote(password)}
    given = dict(parse_qsl(parts.query))
    if unknown := sorted(given.keys() - set(OPTIONS)):
        raise InputError(
            f"where kafka://{parts.host}: unknown keys {', '.join(unknown)}. Known are: "
            f"{', '.join(OPTIONS)}."
        )
    return Consumer(config | given)


def topic_logs(url: str, name: str) -> list[TopicPartitionLog]:
    """Return the partitions of a topic; none if there is no such topic."""
    from confluent_kafka import KafkaError, KafkaException

    topic = unquote(Url(url).path[1:])
    with closing(consumer_of(url)) as consumer:
        try:
            found = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
        except KafkaException as error:
            raise StreamError(f"{name}: {reason(error)}") from None
    if found.error is not None:
        if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return []
        raise StreamError(f"{name}: {found.error.str()}. Correct `where`, or the broker's rights.")
    return [TopicPartitionLog(url, name, topic, number) for number in sorted(found.partitions)]


class TopicPartitionLog:
    """A partition of a topic; ids are offsets."""

    unit = "offset"

    def __init__(self, url: str, name: str, topic: str, number: int) -> None:
        self.name = f"{name}/{number}"
        self.url = url
        self.place = topic, number

    def status(self) -> LogStatus:
        """Return the offsets that are there."""
        from confluent_kafka import KafkaException, TopicPartition

        with closing(consumer_of(self.url)) as consumer:
            try:
                low, high = consumer.get_watermark_offsets(
                    TopicPartition(*self.place), timeout=SECONDS
                )
            except KafkaException as error:
                raise StreamError(f"{self.name}: {reason(error)}") from None
        first = str(low) if low < high else ""
        return LogStatus(first, str(high - 1) if high else "", high - low, high)

    def order(self, entry_id: str) -> int:
        """Return the offset."""
        return int(entry_id)

    def read(self, start: str, last: str) -> Iterator[Entry]:
        """Yield messages, which the client fetches ahead in bounded memory."""
        from confluent_kafka import TopicPartition

        first = int(start.removeprefix(OPEN)) + start.startswith(OPEN)
        with closing(consumer_of(self.url)) as consumer:
            consumer.assign([TopicPartition(*self.place, first)])
            for offset, value in self.messages(consumer):
                if offset <= int(last):
                    yield Entry(str(offset), offset, {FIELD: value})
                if offset >= int(last):
                    return

    def messages(self, consumer: Consumer) -> Iterator[tuple[int, bytes]]:
        """Yield offsets and values up to the end of the partition."""
        from confluent_kafka import KafkaError

        while True:
            message = consumer.poll(SECONDS)
            if message is None:
                raise StreamError(f"{self.name}: no answer in {SECONDS:.0f} s. {CHECK}")
            fault, offset = message.error(), message.offset()
            if fault is not None and fault.code() == KafkaError._PARTITION_EOF:
                return
            if fault is not None or offset is None:
                raise StreamError(f"{self.name}: {fault.str() if fault else message}. {CHECK}")
            yield offset, message.value() or b""


def reason(error: Exception) -> str:
    """Return the text of an error of the client, and what to do."""
    [first] = error.args[:1] or [error]
    return f"{first.str() if hasattr(first, 'str') else first}. {CHECK}"
