"""Makes the fixture `odradek` known in this tree, where the package is not installed."""

pytest_plugins = ["odradek.pytest_plugin"]
