"""Reads the reports of `taut check`: read.py SCHEMA STEM... where STEM.xml and STEM.sarif are the files.

Fails if a reader refuses a file, or if the two files of a run do not tell the same.
"""
import json
import pathlib
import sys

import jsonschema
from junitparser import JUnitXml


def junit(path):
    document = JUnitXml.fromfile(str(path))
    failed, cases = set(), 0
    for suite in document:
        own = sum(1 for case in suite if any(type(result).__name__ == "Failure" for result in case.result))
        assert own == suite.failures, f"{path}: {suite.name} says {suite.failures} failures, and has {own}"
        skipped = sum(1 for case in suite if any(type(result).__name__ == "Skipped" for result in case.result))
        assert skipped == suite.skipped, f"{path}: {suite.name} says {suite.skipped} skipped, and has {skipped}"
        for case in suite:
            cases += 1
            assert case.name and case.classname, f"{path}: a case without a name"
            if any(type(result).__name__ == "Failure" for result in case.result):
                failed.add(f"{case.name}@{suite.name}")
    return cases, failed


def sarif(path, validator):
    document = json.loads(path.read_text())
    faults = sorted(validator.iter_errors(document), key=str)
    assert not faults, f"{path}: " + "; ".join(f"{fault.json_path}: {fault.message}" for fault in faults[:5])
    run = document["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"], f"{path}: ruleIndex leads to another rule"
    return {result["partialFingerprints"]["check/v1"] for result in run["results"] if result["level"] != "note"}


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert list(validator.iter_errors({"version": "2.1.0"})), "the schema accepts anything"
    for stem in map(pathlib.Path, sys.argv[2:]):
        cases, failed = junit(stem.with_suffix(".xml"))
        told = sarif(stem.with_suffix(".sarif"), validator)
        assert told == failed, f"{stem}: SARIF and JUnit differ: {sorted(told ^ failed)}"
        assert bool(failed) == (stem.name == "bad"), f"{stem}: {len(failed)} failures"
        print(f"{stem.name}: {cases} cases, {len(failed)} failures; JUnit and SARIF are read and agree")


main()
