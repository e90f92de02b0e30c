"""Settings of this product alone: all begin with `odradek.`, so that none can meet one of Kafka's.

The notation of the table is that of `definition.py`.
"""

from __future__ import annotations

from coordinator.settings.definition import SettingTable

PREFIX = "odradek."

TABLE = """\
odradek.cluster.id             string    low     read-only  -  nonempty
odradek.control.enable         boolean   low     read-only  true  any
odradek.control.port           int       low     read-only  0  0..65535
odradek.flush.on.acknowledge   boolean   medium  read-only  false  any
odradek.kafka.release          string    medium  read-only  4.4  {3.9,4.0,4.1,4.2,4.3,4.4}
odradek.memory                 boolean   high    read-only  false  any
odradek.memory.max.bytes       long      medium  read-only  1073741824  >=1048576
"""

NODE = SettingTable(TABLE)
