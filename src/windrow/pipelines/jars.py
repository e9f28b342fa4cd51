"""The jars that Spark needs for Kafka, fetched by name with the Ivy that PySpark ships.

    python -m windrow.pipelines.jars            the connector and Avro, for `spark.jars`

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

SCALA = "2.13"
HOME = Path(sys.prefix) / "share" / "windrow"
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
CONNECTOR = f"""\
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_{SCALA}" rev="released" conf="jars->default"/>
    <dependency org="org.apache.spark" name="spark-avro_{SCALA}" rev="released" conf="jars->default"/>
    <exclude org="org.apache.spark" module="spark-tags_{SCALA}"/>
    {"".join(f'<exclude org="{name}"/>' for name in IN_SPARK)}
    <override org="org.apache.spark" module="spark-token-provider-kafka-0-10_{SCALA}" rev="released"/>"""
IVY = """\
<ivy-module version="2.0">
  <info organisation="windrow" module="pipelines"/>
  <configurations><conf name="jars"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
# Ivy works for seconds: code that is compiled very well costs more than it saves.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# Ivy's own settings, and what the word `released` means.
SETTINGS = """\
<ivysettings>
  <include url="${{ivy.default.settings.dir}}/ivysettings.xml"/>
  <version-matchers usedefaults="true">
    <pattern-vm><match revision="released" pattern="{released}" matcher="regexp"/></pattern-vm>
  </version-matchers>
</ivysettings>
"""


def spark_jars() -> str:
    """The value of `spark.jars` with which Spark reads and writes Kafka, and Avro."""
    jars = sorted(_folder().glob("*.jar"))
    if not jars:
        raise WindrowError(
            f"the jars for Kafka are not in {_folder()}: fetch them with 'python -m windrow.pipelines.jars', "
            "or name your own with spark.jars or spark.jars.packages"
        )
    return ",".join(map(str, jars))


def _folder() -> Path:
    """Where the connector is kept: beside the PySpark that it is for."""
    return HOME / f"spark-{pyspark.__version__}"


def java() -> str:
    """The program that runs jars, found as Spark finds it."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise WindrowError(
            "Kafka and Spark need Java 17 or 21: install it, or say where it is with JAVA_HOME"
        )
    return found


def fetch(target: Path, dependencies: str) -> Path:
    """Fetch jars into a folder, unless they are there; `dependencies` are those of an Ivy module."""
    if target.exists():
        return target
    home = target.parent
    home.mkdir(parents=True, exist_ok=True)
    (home / "ivy.xml").write_text(IVY.format(dependencies=dependencies))
    (home / "settings.xml").write_text(SETTINGS.format(released=released(pyspark.__version__)))
    draft = home / f"{target.name}.draft"
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    files = {"-settings": home / "settings.xml", "-cache": home / "ivy", "-ivy": home / "ivy.xml"}
    command = [java(), *QUICK, "-jar", str(ivy), *(str(word) for pair in files.items() for word in pair)]
    command += ["-confs", "jars", "-retrieve", f"{draft}/[artifact]-[revision].[ext]", "-warn"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WindrowError(
            f"Ivy could not fetch the jars for {target.name}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return draft.rename(target)  # all of them are there, or none


def released(version: str) -> str:
    """A pattern of the releases up to this version of Spark, from the same major version.

    >>> released("4.2.1")
    '4\\\\.(0\\\\.\\\\d+|1\\\\.\\\\d+|2\\\\.0|2\\\\.1)'
    """
    major, minor, patch = version.split(".")[:3]
    older = [rf"{number}\.\d+" for number in range(int(minor))]
    older += [rf"{minor}\.{number}" for number in range(int(patch) + 1)]
    return rf"{major}\.({'|'.join(older)})"


if __name__ == "__main__":
    for jar in sorted(fetch(_folder(), CONNECTOR).iterdir()):
        print(jar)
