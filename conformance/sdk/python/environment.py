"""What the suite is told by the environment, and nothing else.

The SDK itself reads E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY (or E2B_DOMAIN and E2B_API_KEY).
The ISTHMUS_TEST_* variables describe the surroundings that a harness has set up; a case whose surroundings
are not described is reported as skipped, with the name of the variable.
"""

import os

import pytest

API_KEY = os.environ["E2B_API_KEY"]
DOMAIN = os.environ.get("E2B_DOMAIN", "")
API_URL = os.environ.get("E2B_API_URL") or f"https://api.{DOMAIN}"
# In URL mode sandboxes are reached over the same plain http as the API, in domain mode over https.
SCHEME = "http" if API_URL.startswith("http:") else "https"
SOCKET_SCHEME = "ws" if SCHEME == "http" else "wss"

# A sandbox of the template base has two processors and so much memory, in MiB: some clouds sell it with processors only.
MEMORY_MB = int(os.environ.get("ISTHMUS_TEST_MEMORY_MB", "1024"))

# Fields of a create that the pool serves and others refuse, separated by commas.
SERVED = os.environ.get("ISTHMUS_TEST_SERVED", "").split(",")


def surroundings(name: str) -> str:
    """The value of one ISTHMUS_TEST_* variable; skips the case, saying so, when it is not set."""
    value = os.environ.get(name, "")
    if not value:
        pytest.skip(f"{name} is not set: this case needs a harness that provides it")
    return value
