"""Loading the settings of a node: refusals first, then files, environment, precedence, and what follows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config import MEMORY_DIRECTORY, BrokerConfig, ConfigError, load_config
from broker.config_log import LogConfig
from broker.config_sources import environment_settings, parse_properties, parse_yaml, setting_name

EXAMPLES = Path(__file__).resolve().parents[2] / "configs"


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["nosuch=1"], ["--set nosuch=1", "no setting"]),
        (["num.partitons=1"], ["num.partitons", "did you mean num.partitions?"]),
        (["num.partitions"], ["--set num.partitions", "name=value"]),
        (["=1"], ["--set =1", "name=value"]),
        (["num.partitions=1", " num.partitions=2"], ["--set num.partitions is given twice"]),
        (["num.partitions=many"], ["--set num.partitions: Invalid", "many", "INT"]),
        (["num.partitions="], ["Invalid value '' for configuration num.partitions"]),
        (["listeners=PLAINTEXT://0.0.0.0:0"], ["advertised.listeners=PLAINTEXT://<an address they reach>:PORT."]),
        (["odradek.memory=true", "log.dirs=/x"], ["odradek.memory", "log.dirs=/x"]),
        (["broker.id=1", "node.id=2"], ["broker.id=1", "node.id=2"]),
        (["odradek.kafka.release=2.8"], ["odradek.kafka.release", "2.8", "4.4"]),
        (["create.topic.policy.class.name=a.B"], ["create.topic.policy.class.name", "a.B", "Java"]),
        (["authorizer.class.name=a.B"], ["authorizer.class.name", "a.B", "leave the setting out"]),
        (["principal.builder.class=a.B"], ["principal.builder.class", "a.B"]),
        (["group.consumer.assignors=a.B"], ["group.consumer.assignors", "a.B", "range, uniform"]),
        (["listeners=SSL://:1", "inter.broker.listener.name=SSL"], ["SSL", "does not speak"]),
        (["remote.log.storage.system.enable=true"], ["remote.log.storage.system.enable"]),
        (
            ["process.roles=broker", "controller.quorum.voters=3@a:1", "listeners=PLAINTEXT://:1"],
            ["process.roles", "broker,controller"],
        ),
        (["config.providers=x", "config.providers.x.class=a.B"], ["config.providers.x.class", "a.B"]),
    ],
)
def test_u14_refusals_name_the_setting_and_the_way_out(sets: list[str], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(sets=sets, environment={})
    text = str(caught.value)
    for part in said:
        assert part in text
    assert "\n" not in text


def test_data_and_log_dirs_are_one() -> None:
    with pytest.raises(ConfigError, match="--data /a and --set"):
        load_config(sets=["log.dirs=/b"], data_directory="/a", environment={})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "a: [1", "is not YAML"),
        ("a.yaml", "- a\n- b\n", "line 1"),
        ("a.yml", "log:\n  dirs: [a, [b]]\n", "log.dirs"),
        ("a.yaml", "num.partitions: 1\nnum:\n  partitions: 2\n", "given twice"),
        ("a.yaml", "? [a]\n: 1\n", "line 1"),
        ("a.properties", "log.dirs=C:\\users\n", "\\u"),
    ],
)
def test_malformed_files_are_told_with_their_place(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(ConfigError) as caught:
        load_config(file=path, environment={})
    assert said in str(caught.value)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.properties", "# a comment\nbroker.rack=a,\\\n  b\nnum.partitions=x\n", 4),
        ("a.properties", "num.partitions=\\\n\\\nx\n", 1),
        ("a.yaml", "broker.rack: a\nnum.partitions: x\n", 2),
        ("a.yml", "num:\n  io.threads: 1\n  partitions: x\n", 3),
    ],
)
def test_a_bad_value_is_told_with_its_place_in_a_file(tmp_path: Path, name: str, text: str, line: int) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(ConfigError) as caught:
        load_config(file=path, environment={})
    assert str(caught.value).startswith(f"{path}, line {line}: Invalid value x for configuration num.partitions: ")


def test_a_bad_value_is_told_with_the_place_that_wins(tmp_path: Path) -> None:
    path = written(tmp_path, "a.properties", "num.partitions=1\nbroker.rack=r\n")
    environment = {"KAFKA_NUM_PARTITIONS": "x"}
    with pytest.raises(ConfigError, match=r"^KAFKA_NUM_PARTITIONS: Invalid value x "):
        load_config(file=path, environment=environment)
    assert load_config(file=path, environment=environment, sets=["num.partitions=3"])["num.partitions"] == 3
    with pytest.raises(ConfigError, match=r"^--set num\.partitions: Invalid value y "):
        load_config(file=path, environment=environment, sets=["num.partitions=y"])


def test_settings_that_do_not_go_together_are_told_with_all_their_places(tmp_path: Path) -> None:
    path = written(tmp_path, "a.properties", "broker.id=1\n")
    with pytest.raises(ConfigError, match=r", line 1 and KAFKA_NODE_ID: broker\.id=1 and node\.id=2"):
        load_config(file=path, environment={"KAFKA_NODE_ID": "2"})
    with pytest.raises(ConfigError, match=r"^--set odradek\.memory and --data: odradek\.memory=true"):
        load_config(sets=["odradek.memory=true"], data_directory="/x", environment={})


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match="/no/such/file"):
        load_config(file="/no/such/file", environment={})


# --- files ----------------------------------------------------------------------------------------------


def test_properties_as_java_reads_them() -> None:
    text = (
        "# a comment\n! another\n\n"
        "a=1\nb : 2\nc 3\n  d\t=\t4  \nempty=\nalone\n"
        "long = one,\\\n    two,\\\n    three\n"
        "escaped\\ key\\=x=\\tvalue\\u00e9\\\\\n"
        "a=again\r\nlast=1\\"
    )
    assert parse_properties(text) == {
        "a": "again",
        "b": "2",
        "c": "3",
        "d": "4  ",
        "empty": "",
        "alone": "",
        "long": "one,two,three",
        "escaped key=x": "\tvalueé\\",
        "last": "1",
    }


def test_a_comment_does_not_go_on() -> None:
    assert parse_properties("# comment \\\na=1\n") == {"a": "1"}
    assert parse_properties("a=1,\\\n# no comment\n") == {"a": "1,# no comment"}


@given(st.dictionaries(st.text("abc.", min_size=1), st.text("xyz,:=/ ").map(str.strip), max_size=6))
def test_properties_come_back(settings: dict[str, str]) -> None:
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    assert parse_properties(text) == settings


def test_yaml_flat_nested_and_lists_as_they_are_written() -> None:
    text = (
        b"num.partitions: 010\n"
        b"log:\n  retention:\n    ms: 1_000\n  dirs: [a, b]\n"
        b"auto.create.topics.enable: true\n"
        b"listeners:\n  - PLAINTEXT://:9092\n"
        b"broker.rack: ~\n"
        b"inter.broker.listener.name: 'on'\n"
        b"empty: ''\n"
    )
    assert parse_yaml(text) == {
        "num.partitions": "010",
        "log.retention.ms": "1_000",
        "log.dirs": "a,b",
        "auto.create.topics.enable": "true",
        "listeners": "PLAINTEXT://:9092",
        "inter.broker.listener.name": "on",
        "empty": "",
    }
    assert parse_yaml(b"# nothing\n") == {}


KAFKAS_OWN = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
log.retention.hours=168
zookeeper.connect=localhost:2181
"""


def test_kafkas_own_file_loads_and_unknown_names_are_warned_of(tmp_path: Path) -> None:
    path = written(tmp_path, "server.properties", KAFKAS_OWN)
    config = load_config(file=path, environment={})
    assert [warning for warning in config.warnings if "zookeeper.connect" in warning] == config.warnings
    assert len(config.warnings) == 1
    assert config.warnings[0].startswith(f"{path}, line 17: zookeeper.connect is not a setting known here")
    assert [listener.is_controller for listener in config.listeners] == [False, True]


@pytest.mark.parametrize("name", ["dev.yaml", "single-node.yaml", "server.properties"])
def test_the_examples_load_without_a_warning(name: str) -> None:
    assert load_config(file=str(EXAMPLES / name), environment={}).warnings == []


def test_config_providers_fill_in_values(tmp_path: Path) -> None:
    secrets = written(tmp_path, "secrets.properties", "rack=r1\n")
    written(tmp_path, "reserve", "7")
    path = written(
        tmp_path,
        "server.properties",
        "config.providers=file,dir,env\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        "config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider\n"
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        f"broker.rack=${{file:{secrets}:rack}}\n"
        f"num.partitions=${{dir:{tmp_path}:reserve}}\n"
        "default.replication.factor=${env:FACTOR}\n",
    )
    config = load_config(file=path, environment={"FACTOR": "3"})
    assert (config["broker.rack"], config["num.partitions"], config["default.replication.factor"]) == ("r1", 7, 3)
    assert config.warnings == []


# --- environment and precedence ------------------------------------------------------------------------------


def test_the_environment_as_kafkas_image_reads_it() -> None:
    assert setting_name("LOG_RETENTION_MS") == "log.retention.ms"
    assert setting_name("A__B___C_D") == "a_b-c.d"
    assert environment_settings(
        {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_": "", "PATH": "/", "CLUSTER_ID": "abc"}
    ) == {"num.partitions": "3", "odradek.cluster.id": "abc"}


def test_unknown_names_of_the_environment_are_ignored() -> None:
    config = load_config(environment={"KAFKA_WHATEVER": "1", "KAFKA_ODRADEK_CONTROL_PORT": "99"})
    assert config.warnings == []
    assert config["odradek.control.port"] == 99
    assert not config.is_set("whatever")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("KAFKA_NUM_PARTITIONZ", "KAFKA_NUM_PARTITIONS"),
        ("KAFKA_LISTENER", "KAFKA_LISTENERS"),
        ("KAFKA_LOG_RETENTION_M", "KAFKA_LOG_RETENTION_MS"),
        ("KAFKA_AUTO_CREATE_TOPIC_ENABLE", "KAFKA_AUTO_CREATE_TOPICS_ENABLE"),
        ("KAFKA_LOG_DIRS_", "KAFKA_LOG_DIRS"),
    ],
)
def test_a_misspelt_variable_is_warned_of(variable: str, meant: str) -> None:
    (warning,) = load_config(environment={variable: "3"}).warnings
    assert warning == f"{variable} is not a setting known here (did you mean {meant}?); it has no effect."


def test_variables_of_others_are_not_taken_for_settings() -> None:
    names = (
        "HEAP_OPTS OPTS JVM_PERFORMANCE_OPTS LOG4J_OPTS LOG4J_ROOT_LOGLEVEL LOG4J_LOGGERS TOOLS_LOG4J_LOGLEVEL "
        "GC_LOG_OPTS JMX_OPTS JMX_PORT JMX_HOSTNAME DEBUG HOME VERSION MODE USER CLUSTER_ID PORT PORT_9092_TCP "
        "PORT_9092_TCP_ADDR SERVICE_HOST SERVICE_PORT SERVICE_PORT_CLIENT BROKER BROKERS BOOTSTRAP_SERVERS "
        "BOOTSTRAP_SERVER URL HOST TOPIC TOPICS GROUP_ID CLIENT_ID CREATE_TOPICS ZOOKEEPER_CONNECT SASL_MECHANISM "
        "SECURITY_PROTOCOL PASSWORD USERNAME"
    )
    environment = {f"KAFKA_{name}": "1" for name in names.split()}
    assert load_config(environment=environment).warnings == []
    with pytest.raises(ConfigError, match=r"^--set listeners: listeners gives port 1 to"):
        load_config(environment=environment, sets=["listeners=A://:1,B://:1"])


def test_config_providers_may_come_from_the_environment() -> None:
    environment = {
        "KAFKA_CONFIG_PROVIDERS": "env",
        "KAFKA_CONFIG_PROVIDERS_ENV_CLASS": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "KAFKA_NUM_PARTITIONS": "${env:COUNT}",
        "COUNT": "5",
    }
    config = load_config(environment=environment)
    assert (config["num.partitions"], config.warnings) == (5, [])


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "a.yaml", "num.partitions: 1\nfetch.max.bytes: 2000\nbroker.rack: file\n")
    environment = {"KAFKA_FETCH_MAX_BYTES": "3000", "KAFKA_BROKER_RACK": "environment"}
    config = load_config(file=path, environment=environment, sets=["broker.rack=line"])
    assert (config["num.partitions"], config["fetch.max.bytes"], config["broker.rack"]) == (1, 3000, "line")


def test_data_is_where_logs_lie() -> None:
    assert load_config(data_directory="/data", environment={}).log_dirs == ("/data",)


# --- what follows -------------------------------------------------------------------------------------------


def test_the_defaults_of_logs_are_kafkas() -> None:
    assert BrokerConfig().log_config("t", {}) == LogConfig()


def test_a_topics_own_settings_and_the_brokers() -> None:
    config = BrokerConfig({"log.retention.hours": "2", "log.segment.bytes": "2000000"})
    own = config.log_config("t", {"cleanup.policy": "compact,delete", "internal.segment.bytes": "100"})
    assert own == LogConfig(retention_ms=7_200_000, segment_bytes=100, cleanup_policy=frozenset({"compact", "delete"}))
    assert config.log_config("t", {}).segment_bytes == 2_000_000
    assert config.log_config("t", {"cleanup.policy": ""}).cleanup_policy == frozenset()


def test_flush_on_acknowledge_is_a_default_of_flush_messages() -> None:
    config = BrokerConfig({"odradek.flush.on.acknowledge": "true"})
    assert config.log_config("t", {}).flush_messages == 1
    assert config.log_config("t", {"flush.messages": "9"}).flush_messages == 9


def test_in_memory_logs_lie_nowhere() -> None:
    config = BrokerConfig({"odradek.memory": "true"})
    assert config.in_memory
    assert config.log_dirs == (MEMORY_DIRECTORY,)
    assert config.metadata_log_dir == MEMORY_DIRECTORY


def test_node_id_and_broker_id_are_one() -> None:
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"node.id": "7"})["broker.id"] == 7
    assert BrokerConfig().node_id == 1


def test_a_listeners_own_value() -> None:
    config = BrokerConfig({"max.connections": "9", "listener.name.plaintext.max.connections": "5"})
    assert config.listener_value("PLAINTEXT", "max.connections") == 5
    assert config.listener_value("OTHER", "max.connections") == 9


def test_dynamic_settings_take_effect_and_are_told_once() -> None:
    config = BrokerConfig({"log.roll.hours": "3"})
    told: list[int] = []
    config.subscribe(["log.roll.ms"], lambda changed: told.append(changed["log.roll.ms"]))
    config.subscribe(["num.io.threads"], lambda changed: told.append(-1))
    assert config.apply_dynamic({"log.roll.ms": "5"}, {}) == {"log.roll.ms", "log.roll.hours"}
    assert config.apply_dynamic({"log.roll.ms": "5"}, {}) == frozenset()
    assert config.apply_dynamic({"log.roll.ms": "5"}, {"log.roll.ms": "6"}) == {"log.roll.ms"}
    assert told == [5, 6]
    config.apply_dynamic({}, {})
    assert config.log_config("t", {}).segment_ms == 3 * 3_600_000


def test_a_dynamic_setting_that_cannot_hold_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    config = BrokerConfig()
    config.apply_dynamic({"num.partitions": "5", "log.roll.ms": "7"}, {})
    assert config["num.partitions"] == 1
    assert config["log.roll.ms"] == 7
    assert "num.partitions" in caplog.text
