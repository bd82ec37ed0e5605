#!/usr/bin/env python3
"""Holds rendered manifests to the schemas of Kubernetes: pip install kubernetes-validate==1.37.0 (which brings pyyaml and jsonschema).

kubernetes_schemas.py VERSION... < manifests     prints "N objects, as Kubernetes VERSION, ... wants them", or what is wrong

A PyTorchJob is no part of Kubernetes. Its pods are checked as pods, and the rest against the operator's CustomResourceDefinition
(kubeflow.org_pytorchjobs.yaml) where TYCHO_PYTORCHJOB_CRD names it.
"""
import os
import sys

import jsonschema
import kubernetes_validate
import yaml

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the definition of the operator is large


def closed(schema):
    """The same schema, in which keys that it does not list are errors, as the server treats them."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" and not is_open:
        schema["additionalProperties"] = False
    return schema


def operator_schema(path):
    with open(path, encoding="utf-8") as file:
        versions = yaml.load(file, Loader)["spec"]["versions"]
    schema = closed(next(one for one in versions if one["name"] == "v1")["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}  # the server's own
    return schema


def pods_of(job):
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        template = replica["template"]
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", **template["metadata"]}, "spec": template["spec"]}


def check(manifest, version):
    if manifest["kind"] != "PyTorchJob":
        kubernetes_validate.validate(manifest, version, strict=True)
        return
    for pod in pods_of(manifest):
        kubernetes_validate.validate(pod, version, strict=True)


def check_for_operator(manifest, _):
    """The same with every version of Kubernetes."""
    path = os.environ.get("TYCHO_PYTORCHJOB_CRD")
    if path and manifest["kind"] == "PyTorchJob":
        jsonschema.validate(manifest, operator_schema(path))


def main(versions):
    manifests = [one for one in yaml.load_all(sys.stdin, Loader) if one]
    problems = []
    for manifest in manifests:
        for held_to, version in [(check, version) for version in versions] + [(check_for_operator, "any version")]:
            try:
                held_to(manifest, version)
            except jsonschema.ValidationError as error:
                place = ".".join(str(part) for part in error.absolute_path)
                problems.append(f"{manifest['kind']} {manifest['metadata']['name']}, Kubernetes {version}: {place}: {error.message[:300]}")
    print("\n".join(problems) or f"{len(manifests)} objects, as Kubernetes {', '.join(versions)} wants them")
    return 1 if problems or not manifests else 0


sys.exit(main(sys.argv[1:]))
