# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes a wheel's bill of materials (CycloneDX 1.6) to standard output, from a description on stdin.

A separate script, because cyclonedx-python-lib is only in the environment of the release tools, where
`workspace.release` runs it. The description is JSON: name, version, license, timestamp (seconds since 1970),
requires (a list of requirements), files (paths and SHA-256 digests), built_with (name, version, purl, license
and kind of the parts compiled or linked into the libraries). With --check it reads a bill instead and prints
its errors.
"""

import datetime
import json
import sys
import uuid

from cyclonedx.exception import MissingOptionalDependencyException
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

# Namespace of the serial numbers, which are derived from the contents for reproducible builds.
NAMESPACE = uuid.UUID("7d9a2f0e-4c56-5a0b-9b1c-2f5d0a6f4b11")


def component(kind: ComponentType, description: dict) -> Component:
    purl = description.get("purl")
    properties = [Property(name="torch-musa:use", value=description["kind"])] if "kind" in description else []
    return Component(
        type=kind,
        name=description["name"],
        version=description["version"],
        bom_ref=purl or description["name"],
        purl=PackageURL.from_string(purl) if purl else None,
        licenses=[LicenseExpression(description["license"])],
        properties=properties,
    )


def bill(description: dict) -> Bom:
    wheel = component(ComponentType.LIBRARY, description)
    serial = uuid.uuid5(NAMESPACE, json.dumps(description, sort_keys=True))
    result = Bom(serial_number=serial)
    result.metadata.timestamp = datetime.datetime.fromtimestamp(
        description["timestamp"], datetime.timezone.utc
    )
    result.metadata.component = wheel
    parts = [component(ComponentType.LIBRARY, part) for part in description["built_with"]]
    for path, digest in sorted(description["files"].items()):
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)]
        parts.append(Component(type=ComponentType.FILE, name=path, bom_ref=path, hashes=hashes))
    for requirement in description["requires"]:
        required = [Property(name="torch-musa:requirement", value=requirement["text"])]
        purl = PackageURL("pypi", name=requirement["name"])
        reference = f"requires:{requirement['name']}"
        parts.append(
            Component(
                type=ComponentType.LIBRARY,
                name=requirement["name"],
                bom_ref=reference,
                purl=purl,
                properties=required,
            )
        )
    for part in parts:
        result.components.add(part)
    result.register_dependency(wheel, parts)
    return result


def problems(text: str) -> list[str]:
    """Returns the violations of the CycloneDX schema in a bill."""
    try:
        found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    except json.JSONDecodeError as error:
        return [f"no JSON: {error}"]
    except MissingOptionalDependencyException as error:
        sys.exit(f"{error}\nFix: pip install -r requirements-release.txt")
    return [str(found).splitlines()[0]] if found else []  # further lines repeat the schema


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        found = problems(sys.stdin.read())
        print("\n".join(found))
        return int(bool(found))
    text = JsonV1Dot6(bill(json.load(sys.stdin))).output_as_string(indent=1)
    if found := problems(text):
        sys.exit("\n".join(found))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
