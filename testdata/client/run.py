"""Runs the checks of this folder against a server: python run.py URL [NAME...]

Prints one line of JSON for each check as it ends: {"check", "seconds", "failure"},
where failure is null or a text; and {"checks": N} last. Checks are unittest's, so
that nothing but the client itself has to be installed.
"""

import json
import sys
import time
import unittest

import server


class Lines(unittest.TestResult):
    """Reports each check as a line."""

    def startTest(self, test):
        super().startTest(test)
        self.failure, self.began = None, time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        name = "/".join(test.id().split("."))
        seconds = round(time.monotonic() - self.began, 3)
        print(json.dumps({"check": name, "seconds": seconds, "failure": self.failure}), flush=True)

    def note(self, test, err):
        self.failure = (self.failure or "") + self._exc_info_to_string(err, test)

    def addError(self, test, err):
        self.note(test, err)

    def addFailure(self, test, err):
        self.note(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(subtest, err)

    def addSkip(self, test, reason):
        self.failure = "skipped: " + reason

    def addExpectedFailure(self, test, err):
        self.failure = "an expected failure"

    def addUnexpectedSuccess(self, test):
        self.failure = "an unexpected success"


def main(url, *names):
    server.URL = url
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names) if names else loader.discover(".", pattern="check_*.py")
    if loader.errors:
        sys.exit("\n".join(loader.errors))
    result = Lines()
    suite.run(result)
    print(json.dumps({"checks": result.testsRun}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
