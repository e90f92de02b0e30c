"""The page of settings says what the tables say: every setting once, with a sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from coordinator.settings.broker import KAFKA
from coordinator.settings.client_metrics import CLIENT_METRICS
from coordinator.settings.group import GROUP
from coordinator.settings.kinder import KINDER_DEFAULTS
from coordinator.settings.node import NODE
from coordinator.settings.topic import TOPIC

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| `([^`]+)` \| (?:boolean|string|int|short|long|double|list|class|password) \| ", re.MULTILINE)
KINDER_ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| ", re.MULTILINE)


def test_the_page_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "docs/settings.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_lists_each_setting_once() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    tables = (KAFKA, NODE, TOPIC, GROUP, CLIENT_METRICS)
    expected = sorted(setting.name for table in tables for setting in table if not setting.internal)
    assert sorted(ROW.findall(page)) == expected


def test_the_page_lists_every_kinder_default() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    section = page[page.index("## Kinder") : page.index("## Our own")]
    assert dict(KINDER_ROW.findall(section)) == {name: kinder.value for name, kinder in KINDER_DEFAULTS.items()}
