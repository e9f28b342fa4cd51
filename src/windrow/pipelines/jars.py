"""The jars that Spark and a broker need for Kafka, fetched by name with the Ivy that PySpark ships.

    python -m windrow.pipelines.jars spark            the connector and Avro, for `spark.jars`
    python -m windrow.pipelines.jars spark broker     a Kafka broker as well, to try things on this machine

Nothing but Java is needed. Ivy checks what it has fetched. A connector belongs to one version of Spark: the one of this
PySpark is taken, or where the repository lacks it, the newest release that is older, and never a preview. What Spark has
already is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark

from windrow.errors import WindrowError

BROKER = "4.3.1"
SCALA = "2.13"
WHAT = ("spark", "broker")
# Jars that lie in `pyspark/jars`: a second copy of a class on the class path is one too many.
IN_SPARK = (
    "org.apache.hadoop",
    "org.scala-lang",
    "org.scala-lang.modules",
    "org.slf4j",
    "org.xerial.snappy",
    "at.yawk.lz4",
    "org.tukaani",
    "com.google.code.findbugs",
)
IVY = """\
<ivy-module version="2.0">
  <info organisation="windrow" module="pipelines"/>
  <configurations><conf name="spark"/><conf name="broker"/></configurations>
  <dependencies>
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_{scala}" rev="released" conf="spark->default"/>
    <dependency org="org.apache.spark" name="spark-avro_{scala}" rev="released" conf="spark->default"/>
    <dependency org="org.apache.kafka" name="kafka_{scala}" rev="{broker}" conf="broker->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="broker->default"/>
    <exclude org="org.apache.spark" module="spark-tags_{scala}" conf="spark"/>
    {excluded}
    <override org="org.apache.spark" module="spark-token-provider-kafka-0-10_{scala}" rev="released"/>
  </dependencies>
</ivy-module>
"""
# Ivy's own settings, and what the word `released` means.
SETTINGS = """\
<ivysettings>
  <include url="${{ivy.default.settings.dir}}/ivysettings.xml"/>
  <version-matchers usedefaults="true">
    <pattern-vm><match revision="released" pattern="{released}" matcher="regexp"/></pattern-vm>
  </version-matchers>
</ivysettings>
"""


def folder(what: str) -> Path:
    """Where jars are kept: beside the PySpark that they are for."""
    version = {"spark": pyspark.__version__, "broker": BROKER}[what]
    return Path(sys.prefix) / "share" / "windrow" / f"{what}-{version}"


def spark_jars() -> str:
    """The value of `spark.jars` with which Spark reads and writes Kafka, and Avro."""
    return ",".join(map(str, _found("spark")))


def broker_jars() -> str:
    """The class path of a Kafka broker."""
    return ":".join(map(str, _found("broker")))


def _found(what: str) -> list[Path]:
    jars = sorted(folder(what).glob("*.jar"))
    if not jars:
        raise WindrowError(
            f"the jars for Kafka are not in {folder(what)}: fetch them with 'python -m windrow.pipelines.jars {what}', "
            "or name your own with spark.jars or spark.jars.packages"
        )
    return jars


def java() -> str:
    """The program that runs jars, found as Spark finds it."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise WindrowError(
            "Kafka and Spark need Java 17 or 21: install it, or say where it is with JAVA_HOME"
        )
    return found


def fetch(what: str) -> Path:
    """Fetch the jars for one of `WHAT`, unless they are there; the folder in which they are."""
    target = folder(what)
    if target.exists():
        return target
    home = target.parent
    home.mkdir(parents=True, exist_ok=True)
    (home / "ivy.xml").write_text(_module())
    (home / "settings.xml").write_text(SETTINGS.format(released=released(pyspark.__version__)))
    draft = home / f"{target.name}.draft"
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    command = [
        java(),
        "-jar",
        str(ivy),
        "-settings",
        str(home / "settings.xml"),
        "-cache",
        str(home / "ivy"),
        "-ivy",
        str(home / "ivy.xml"),
        "-confs",
        what,
    ]
    command += ["-retrieve", f"{draft}/[artifact]-[revision].[ext]", "-warn"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WindrowError(
            f"Ivy could not fetch the jars for {what}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return draft.rename(target)  # all of them are there, or none


def _module() -> str:
    excluded = "\n    ".join(f'<exclude org="{name}" conf="spark"/>' for name in IN_SPARK)
    return IVY.format(scala=SCALA, broker=BROKER, excluded=excluded)


def released(version: str) -> str:
    """A pattern of the releases up to this version of Spark, from the same major version.

    >>> released("4.2.1")
    '4\\\\.(0\\\\.\\\\d+|1\\\\.\\\\d+|2\\\\.0|2\\\\.1)'
    """
    major, minor, patch = version.split(".")[:3]
    older = [rf"{number}\.\d+" for number in range(int(minor))]
    older += [rf"{minor}\.{number}" for number in range(int(patch) + 1)]
    return rf"{major}\.({'|'.join(older)})"


def main(asked: list[str]) -> None:
    if not asked or set(asked) - set(WHAT):
        sys.exit(f"say which jars to fetch: {' and '.join(WHAT)}")
    for what in asked:
        for jar in sorted(fetch(what).iterdir()):
            print(jar)


if __name__ == "__main__":
    main(sys.argv[1:])
