"""Version ranges of older Apache Kafka releases, where they differ from 4.4's.

With these a node can answer as an older broker. Ranges are what a release advertises by default
(versions then marked unstable are left out); None: the release did not have the API.
A range may reach below what 4.4 still serves: dispatch takes the part both have.
"""

from __future__ import annotations

UNKNOWN_FEATURES: dict[str, frozenset[str]] = {
    "3.9": frozenset(
        {
            "eligible.leader.replicas.version",
            "group.version",
            "share.version",
            "streams.version",
            "transaction.version",
        }
    ),
    "4.0": frozenset({"share.version", "streams.version"}),
}
"""Features that a release did not have yet: told of, they would have clients send what it does not take."""

RELEASE_VERSIONS: dict[str, dict[int, tuple[int, int] | None]] = {
    "3.9": {
        0: (0, 11),  # Produce
        1: (0, 17),  # Fetch
        2: (0, 9),  # ListOffsets
        3: (0, 12),  # Metadata
        8: (0, 9),  # OffsetCommit
        9: (0, 9),  # OffsetFetch
        15: (0, 5),  # DescribeGroups
        18: (0, 4),  # ApiVersions
        19: (0, 7),  # CreateTopics
        20: (0, 6),  # DeleteTopics
        23: (0, 4),  # OffsetForLeaderEpoch
        26: (0, 4),  # EndTxn
        27: (0, 1),  # WriteTxnMarkers
        28: (0, 4),  # TxnOffsetCommit
        29: (0, 3),  # DescribeAcls
        30: (0, 3),  # CreateAcls
        31: (0, 3),  # DeleteAcls
        32: (0, 4),  # DescribeConfigs
        34: (0, 2),  # AlterReplicaLogDirs
        35: (0, 4),  # DescribeLogDirs
        38: (0, 3),  # CreateDelegationToken
        39: (0, 2),  # RenewDelegationToken
        40: (0, 2),  # ExpireDelegationToken
        41: (0, 3),  # DescribeDelegationToken
        42: (0, 2),  # DeleteGroups
        45: (0, 0),  # AlterPartitionReassignments
        52: (0, 1),  # Vote
        56: (0, 3),  # AlterPartition
        57: (0, 1),  # UpdateFeatures
        60: (0, 1),  # DescribeCluster
        63: (0, 1),  # BrokerHeartbeat
        66: (0, 1),  # ListTransactions
        68: (0, 0),  # ConsumerGroupHeartbeat
        69: (0, 0),  # ConsumerGroupDescribe
        74: (0, 0),  # ListConfigResources
        76: None,  # ShareGroupHeartbeat
        77: None,  # ShareGroupDescribe
        78: None,  # ShareFetch
        79: None,  # ShareAcknowledge
        80: (0, 0),  # AddRaftVoter
        83: None,  # InitializeShareGroupState
        84: None,  # ReadShareGroupState
        85: None,  # WriteShareGroupState
        86: None,  # DeleteShareGroupState
        87: None,  # ReadShareGroupStateSummary
        88: None,  # StreamsGroupHeartbeat
        89: None,  # StreamsGroupDescribe
        90: None,  # DescribeShareGroupOffsets
        91: None,  # AlterShareGroupOffsets
        92: None,  # DeleteShareGroupOffsets
        93: None,  # StreamsGroupTopologyDescriptionUpdate
        94: None,  # UnregisterController
    },
    "4.0": {
        0: (3, 12),  # Produce
        1: (4, 17),  # Fetch
        2: (1, 10),  # ListOffsets
        8: (2, 9),  # OffsetCommit
        9: (1, 9),  # OffsetFetch
        18: (0, 4),  # ApiVersions
        27: (1, 1),  # WriteTxnMarkers
        28: (0, 5),  # TxnOffsetCommit
        35: (1, 4),  # DescribeLogDirs
        42: (0, 2),  # DeleteGroups
        45: (0, 0),  # AlterPartitionReassignments
        63: (0, 1),  # BrokerHeartbeat
        66: (0, 1),  # ListTransactions
        74: (0, 0),  # ListConfigResources
        76: None,  # ShareGroupHeartbeat
        77: None,  # ShareGroupDescribe
        78: None,  # ShareFetch
        79: None,  # ShareAcknowledge
        80: (0, 0),  # AddRaftVoter
        83: None,  # InitializeShareGroupState
        84: None,  # ReadShareGroupState
        85: None,  # WriteShareGroupState
        86: None,  # DeleteShareGroupState
        87: None,  # ReadShareGroupStateSummary
        88: None,  # StreamsGroupHeartbeat
        89: None,  # StreamsGroupDescribe
        90: None,  # DescribeShareGroupOffsets
        91: None,  # AlterShareGroupOffsets
        92: None,  # DeleteShareGroupOffsets
        93: None,  # StreamsGroupTopologyDescriptionUpdate
        94: None,  # UnregisterController
    },
    "4.1": {
        2: (1, 10),  # ListOffsets
        8: (2, 9),  # OffsetCommit
        9: (1, 9),  # OffsetFetch
        18: (0, 4),  # ApiVersions
        27: (1, 1),  # WriteTxnMarkers
        28: (0, 5),  # TxnOffsetCommit
        35: (1, 4),  # DescribeLogDirs
        42: (0, 2),  # DeleteGroups
        63: (0, 1),  # BrokerHeartbeat
        78: (1, 1),  # ShareFetch
        79: (1, 1),  # ShareAcknowledge
        80: (0, 0),  # AddRaftVoter
        85: (0, 0),  # WriteShareGroupState
        87: (0, 0),  # ReadShareGroupStateSummary
        88: None,  # StreamsGroupHeartbeat
        89: None,  # StreamsGroupDescribe
        90: (0, 0),  # DescribeShareGroupOffsets
        93: None,  # StreamsGroupTopologyDescriptionUpdate
        94: None,  # UnregisterController
    },
    "4.2": {
        18: (0, 4),  # ApiVersions
        28: (0, 5),  # TxnOffsetCommit
        35: (1, 4),  # DescribeLogDirs
        42: (0, 2),  # DeleteGroups
        63: (0, 1),  # BrokerHeartbeat
        88: (0, 0),  # StreamsGroupHeartbeat
        89: (0, 0),  # StreamsGroupDescribe
        93: None,  # StreamsGroupTopologyDescriptionUpdate
        94: None,  # UnregisterController
    },
    "4.3": {
        18: (0, 4),  # ApiVersions
        28: (0, 5),  # TxnOffsetCommit
        42: (0, 2),  # DeleteGroups
        88: (0, 0),  # StreamsGroupHeartbeat
        89: (0, 0),  # StreamsGroupDescribe
        93: None,  # StreamsGroupTopologyDescriptionUpdate
        94: None,  # UnregisterController
    },
}
