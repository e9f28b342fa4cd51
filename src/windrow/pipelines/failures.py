"""Why a stream has ended, said to a person.

Spark wraps what went wrong in what it was doing, and that in a page of its plan. Of failures that happen to every pipeline in its
life, one sentence says what it was and what to do. None of them loses anything: the checkpoint holds all that was finished.
"""

from __future__ import annotations

import re

from windrow.errors import WindrowError

# What is found in Spark's words, and the sentence; groups of the pattern are filled in.
KNOWN = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full: make room, and start again",
    ),
    (
        r"(topic \S+, partition \d+, offset \d+: this message cannot be read, .*? goes on)",
        "{0}",
    ),
    (
        r"(column '[^']*', value [^\n]*?: more than [^\n]*? goes on)",
        "{0}",
    ),
    (
        r"Some data may have been lost|OffsetOutOfRangeException|offset was changed from",
        "Kafka has deleted messages that were not read yet: keep them longer (retention.ms); to go on without them, "
        'start once with options={{"failOnDataLoss": "false"}}',
    ),
    (
        r"sources in the checkpoint offsets and now there are|OPERATOR_NOT_MATCH_IN_STATE_METADATA",
        "the checkpoint began with other sources or on another path: if it began on the general path, as all of windrow 0.2.0 did, start it "
        "with path='general'",
    ),
    (
        r"UnknownTopicOrPartitionException",
        "the topic is not there: create it, and start again",
    ),
    (
        r"org\.apache\.kafka\.common\.errors\.TimeoutException|KafkaConsumer\S* (?:poll )?timed? ?out|Failed to get records",
        "the Kafka broker does not answer: see that it runs at the address given, and start again",
    ),
)


def plainly(error: Exception, *, checkpoint: str) -> WindrowError:
    """The failure of a stream as one sentence; what is not known here keeps Spark's first line.

    >>> print(plainly(OSError("[Errno 28] No space left on device"), checkpoint="state/"))
    the disk is full: make room, and start again (all that was finished is in the checkpoint state/, and it goes on from there)
    """
    said = str(error)
    for pattern, sentence in KNOWN:
        found = re.search(pattern, said)
        if found is not None:
            text = sentence.format(*found.groups())
            break
    else:
        text = said.strip().partition("\n")[0]
    where = f"all that was finished is in the checkpoint {checkpoint}, and it goes on from there"
    return WindrowError(f"{text} ({where})")
