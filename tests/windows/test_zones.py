"""Two sources of time zones, the system and the package `tzdata`: the newer one says when days begin."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

# A zone that exists nowhere: five hours behind UTC as the system has it, seven as the package has it.
ZONE = "Moon/Base"
SYSTEM, PACKAGE = "Etc/GMT+5", "Etc/GMT+7"
WINDOW = f"""
import pyarrow as pa
import windrow as wr
from windrow.measure import Measure
(placed,) = wr.calendar("1 day", tz="{ZONE}").place(Measure("t", pa.timestamp("s")))
starts, _ = placed.windows(86_400 * 100, 86_400 * 100)
print(starts[0] // 3_600 % 24)
"""


def bytes_of(zone: str) -> bytes:
    return resources.files("tzdata.zoneinfo").joinpath(*zone.split("/")).read_bytes()


def first_hour(folder: Path, system: dict[str, str], *, known: bool = True) -> int:
    """The hour of UTC at which a day begins there; `system` are files that tell the system's version.

    The package is of 2024b, and has the zone if it is `known`.
    """
    zones = folder / "system"
    (zones / ZONE).parent.mkdir(parents=True)
    (zones / ZONE).write_bytes(bytes_of(SYSTEM))
    for name, text in system.items():
        (zones / name).write_text(text)
    made = folder / "packages" / "tzdata"
    (made / "zoneinfo" / ZONE).parent.mkdir(parents=True)
    (made / "__init__.py").write_text("IANA_VERSION = '2024b'\n")
    for part in (made / "zoneinfo", (made / "zoneinfo" / ZONE).parent):
        (part / "__init__.py").touch()
    if known:
        (made / "zoneinfo" / ZONE).write_bytes(bytes_of(PACKAGE))
    path = os.pathsep.join([str(made.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONTZPATH": str(zones)}
    done = subprocess.run(
        [sys.executable, "-c", WINDOW], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(
    ("system", "hour"),
    [
        ({"tzdata.zi": "# version 2024a\n# This zic input file"}, 7),
        ({"tzdata.zi": "# version 2025a\n"}, 5),
        ({"tzdata.zi": "# version 2024b\n"}, 5),
        ({"+VERSION": "2023c\n"}, 7),
        ({"+VERSION": "2026a\n"}, 5),
        ({}, 5),
        ({"tzdata.zi": "Z Moon/Base 0 - UTC\n"}, 5),
    ],
    ids=[
        "package newer",
        "system newer",
        "equal",
        "package newer than +VERSION",
        "+VERSION newer",
        "system does not tell",
        "system tells something else",
    ],
)
def test_the_newer_zones_are_used(tmp_path, system, hour):
    assert first_hour(tmp_path, system) == hour


def test_a_zone_that_the_newer_package_does_not_have_is_the_systems(tmp_path):
    assert first_hour(tmp_path, {"tzdata.zi": "# version 2024a\n"}, known=False) == 5


def test_a_zone_that_is_nearly_right_leads_to_the_right_one():
    import windrow as wr

    with pytest.raises(wr.QueryError, match=r"no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'\?"):
        wr.calendar("1 day", tz="Europe/Berln")


@pytest.mark.parametrize("zone", ["+25:00", "-24:00", "+05:60"])
def test_an_offset_beyond_a_day_is_no_zone(zone):
    import windrow as wr

    with pytest.raises(wr.QueryError, match="offsets go from -23:59 to"):
        wr.calendar("1 day", tz=zone)
