"""The levels of this process's loggers, under Kafka's names of levels: what BROKER_LOGGER resources show.

`root` is the logger of everything. Source: Kafka's LoggingController.
"""

from __future__ import annotations

import logging

ROOT = "root"

TRACE = 5
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}
_NAMES = sorted(((level, name) for name, level in LEVELS.items()), reverse=True)


def logger_levels() -> dict[str, str]:
    """The level that holds for each logger that exists, root first."""
    names = [name for name, it in logging.root.manager.loggerDict.items() if isinstance(it, logging.Logger)]
    levels = {ROOT: _name_of(logging.root.level)}
    levels.update((name, _name_of(logging.getLogger(name).getEffectiveLevel())) for name in sorted(names))
    return levels


def logger_exists(name: str) -> bool:
    """Whether a logger of this name has been used."""
    return name == ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def set_logger_level(name: str, level: str | None) -> None:
    """Give a logger the level of this name; None: that of the logger above it."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])


def _name_of(level: int) -> str:
    return next((name for at, name in _NAMES if level >= at), "TRACE")
