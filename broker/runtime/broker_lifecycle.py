"""A broker's life in the cluster: it registers, asks to be unfenced, and takes leave (K18 to K20).

In the process of the controller one heartbeat per change of state is enough: the session of such a
broker ends with the process. Source: Kafka's BrokerLifecycleManager.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker.runtime.controller_client import ControllerClient
from broker.runtime.metadata_publisher import MetadataCache
from coordinator.metadata.features import SERVED_FEATURES
from coordinator.metadata.image import Endpoint
from wire.errors import KafkaError
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from wire.messages.controller_registration import ControllerRegistrationRequest
from wire.messages.controller_registration import Feature as ControllerFeature
from wire.messages.controller_registration import Listener as ControllerListener

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker registers with.

    `endpoints` are its advertised listeners, `controller_endpoints` those of a controller listener (none
    where there is none), `log_dirs` the directory ids, `previous_broker_epoch` the epoch of the last
    clean stop (-1 without one), `incarnation_id` is new at every start.
    """

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]
    log_dirs: Sequence[bytes]
    rack: str | None = None
    previous_broker_epoch: int = -1
    controller_endpoints: Sequence[Endpoint] = ()


class BrokerLifecycle:
    """Register before the logs are loaded, unfence when they are, shut down when listeners are closed."""

    def __init__(self, controller: ControllerClient, metadata: MetadataCache, identity: BrokerIdentity) -> None:
        self._controller = controller
        self._metadata = metadata
        self._identity = identity
        self._broker_epoch = -1

    @property
    def broker_epoch(self) -> int:
        """The epoch of this registration, -1 before it; for `.kafka_cleanshutdown` and AlterPartition."""
        return self._broker_epoch

    async def register(self) -> int:
        """Register as a new, fenced incarnation; returns the broker epoch. Raises KafkaError."""
        identity = self._identity
        if identity.controller_endpoints:
            await self._register_controller()
        response = await self._controller.request(
            BrokerRegistrationRequest(
                broker_id=identity.broker_id,
                cluster_id=identity.cluster_id,
                incarnation_id=identity.incarnation_id,
                listeners=[Listener(**_listener(endpoint)) for endpoint in identity.endpoints],
                features=[
                    Feature(
                        name=feature.name,
                        min_supported_version=feature.min_level,
                        max_supported_version=feature.max_level,
                    )
                    for feature in SERVED_FEATURES
                ],
                rack=identity.rack,
                log_dirs=list(identity.log_dirs),
                previous_broker_epoch=identity.previous_broker_epoch,
            )
        )
        self._broker_epoch = response.broker_epoch
        return self._broker_epoch

    async def _register_controller(self) -> None:
        identity = self._identity
        await self._controller.request(
            ControllerRegistrationRequest(
                controller_id=identity.broker_id,
                incarnation_id=identity.incarnation_id,
                listeners=[ControllerListener(**_listener(endpoint)) for endpoint in identity.controller_endpoints],
                features=[
                    ControllerFeature(
                        name=feature.name,
                        min_supported_version=feature.min_level,
                        max_supported_version=feature.max_level,
                    )
                    for feature in SERVED_FEATURES
                ],
            )
        )

    async def unfence(self) -> None:
        """Become alive: the logs are loaded and metadata is applied. Raises KafkaError."""
        await self._heartbeat(want_fence=False)

    async def shut_down(self) -> None:
        """Give up leaderships and be fenced. A controller that cannot be asked any more is no reason
        not to stop: the next start is then treated as after a crash."""
        try:
            while not (await self._heartbeat(want_shut_down=True)).should_shut_down:
                pass
        except KafkaError as error:
            logger.warning("the controlled shutdown of broker %d failed: %s", self._identity.broker_id, error)

    async def directories_failed(self, directory_ids: Sequence[bytes]) -> None:
        """Tell that these log directories are offline: others take over what was led from them. Raises KafkaError."""
        await self._heartbeat(offline_log_dirs=directory_ids)

    async def _heartbeat(
        self, *, want_fence: bool = False, want_shut_down: bool = False, offline_log_dirs: Sequence[bytes] = ()
    ) -> BrokerHeartbeatResponse:
        response: BrokerHeartbeatResponse = await self._controller.request(
            BrokerHeartbeatRequest(
                broker_id=self._identity.broker_id,
                broker_epoch=self._broker_epoch,
                current_metadata_offset=self._metadata.image.offset,
                want_fence=want_fence,
                want_shut_down=want_shut_down,
                offline_log_dirs=list(offline_log_dirs),
            )
        )
        return response


def _listener(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "name": endpoint.listener_name,
        "host": endpoint.host,
        "port": endpoint.port,
        "security_protocol": endpoint.security_protocol,
    }
