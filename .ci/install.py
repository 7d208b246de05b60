"""Install packages with uv, from the indexes and folders that pip is configured with.

uv reads neither pip.conf nor PIP_*. `.venv/bin/python .ci/install.py ARGUMENTS` runs
`uv pip install ARGUMENTS` for that .venv, with pip's settings as variables of uv.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SECTIONS = ("global", "install", ":env:")  # the later wins, as in pip
VARIABLES = {  # key of pip's configuration: variable of uv, separator of several values
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "no-index": ("UV_NO_INDEX", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
}


def pip_settings(listing: str) -> dict[str, list[str]]:
    """Read the values of each key from the output of `pip config list`."""
    settings = {}
    lines = [line.partition("=") for line in listing.splitlines() if "=" in line]
    for section in SECTIONS:
        for name, _, value in lines:
            if name.startswith(f"{section}."):
                settings[name.removeprefix(f"{section}.")] = str(ast.literal_eval(value)).split()
    return settings


def uv_environment(settings: Mapping[str, list[str]]) -> dict[str, str]:
    """Translate pip's settings to variables of uv."""
    known = [(VARIABLES[key], values) for key, values in settings.items() if key in VARIABLES]
    return {name: separator.join(values) for (name, separator), values in known if values}


def main(arguments: list[str]) -> None:
    """Become `uv pip install`; variables that are set already win."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "install", "--python", sys.executable, *arguments]
    os.execve(uv, command, uv_environment(pip_settings(listing.stdout)) | os.environ)


if __name__ == "__main__":
    main(sys.argv[1:])
