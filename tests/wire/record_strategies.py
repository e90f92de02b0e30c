"""Hypothesis strategies for records and batches."""

from __future__ import annotations

from hypothesis import strategies as st

from wire.records import NewRecord

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMESTAMPS = st.one_of(st.just(-1), st.integers(0, 2**45))
NULLABLE_BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=20)), max_size=4).map(tuple)
NEW_RECORDS = st.builds(NewRecord, key=NULLABLE_BYTES, value=NULLABLE_BYTES, headers=HEADERS, timestamp=TIMESTAMPS)
RECORD_LISTS = st.lists(NEW_RECORDS, min_size=1, max_size=20)
