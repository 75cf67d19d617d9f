"""What the areas share."""

import time
import urllib.error
import urllib.request


class Absent(Exception):
    """Raised by an area that the version does not have."""


def eventually(check, seconds=20.0):
    """Calls check until it returns something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s, last answer: {value!r}"
        time.sleep(0.05)


def failure(call, *args, **kwargs):
    """The exception of a call that must fail."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        return error
    raise AssertionError("the call should have failed")


def fetch(url, body=None, content_type=None):
    """The status and the body of an answer, as any program gets them that is no E2B client."""
    headers = {"Content-Type": content_type} if content_type else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def form(name, content):
    """One file as a form: the body and its type."""
    boundary = "----isthmus"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def create(sandbox_class, **options):
    """A new sandbox: by the constructor in the first versions, by create in the later ones."""
    make = getattr(sandbox_class, "create", sandbox_class)
    return make(**options)


def listed(e2b, metadata):
    """The sandboxes with this metadata: a list of all in the first versions, a paginator in the later ones."""
    query_class = getattr(e2b, "SandboxQuery", None)
    if query_class is None:
        from e2b.sandbox.sandbox_api import SandboxQuery as query_class
    found = e2b.Sandbox.list(query=query_class(metadata=metadata))
    if isinstance(found, list):
        return found
    everything = []
    while found.has_next:
        everything += found.next_items()
    return everything


def same(one, other):
    """Whether two ids are of one sandbox: the first versions add a client's id to them."""
    return one.split("-")[0] == other.split("-")[0]
