"""Signed URLs: read and write by anybody who has the URL, for as long as it holds."""

import asyncio
from urllib.parse import urlsplit, urlunsplit

import pytest

from conftest import done
from environment import SCHEME


def by_host_name(url, sandbox):
    """The same request, addressed by the sandbox's own host name."""
    parts = urlsplit(url)
    return urlunsplit((SCHEME, sandbox.get_host(49983), parts.path, parts.query, ""))


@pytest.fixture(params=["as given", "by host name"])
def address(request):
    return (lambda url, sandbox: url) if request.param == "as given" else by_host_name


@pytest.mark.parametrize("user", [None, "user", "root"])
@pytest.mark.parametrize("expiration", [None, 60])
async def test_read(sandbox, web, folder, address, user, expiration):
    await done(sandbox.files.write(f"{folder}/f", "signed content"))
    url = await done(sandbox.download_url(f"{folder}/f", user=user, use_signature_expiration=expiration))
    answer = await web.get(address(url, sandbox))
    assert (answer.status_code, answer.text) == (200, "signed content")
    assert answer.headers["content-disposition"] == "inline; filename=f"


@pytest.mark.parametrize("user", [None, "root"])
async def test_write(sandbox, web, folder, address, user):
    url = await done(sandbox.upload_url(f"{folder}/new/f", user=user))
    answer = await web.post(address(url, sandbox), files={"file": ("ignored", b"uploaded")})
    assert answer.status_code == 200
    assert answer.json() == [{"name": "f", "path": f"{folder}/new/f", "type": "file"}]
    assert await done(sandbox.files.read(f"{folder}/new/f")) == "uploaded"
    assert (await done(sandbox.files.get_info(f"{folder}/new/f"))).owner == (user or "user")


async def test_write_without_a_file_name(sandbox, web, folder, address):
    url = await done(sandbox.upload_url(f"{folder}/f"))
    body = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nbare\r\n--b--\r\n'
    answer = await web.post(address(url, sandbox), content=body, headers={"content-type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 200, answer.text
    assert await done(sandbox.files.read(f"{folder}/f")) == "bare"


async def test_expired(sandbox, web, folder, address):
    await done(sandbox.files.write(f"{folder}/f", "x"))
    url = await done(sandbox.download_url(f"{folder}/f", use_signature_expiration=1))
    await asyncio.sleep(2.1)
    answer = await web.get(address(url, sandbox))
    assert answer.status_code == 401
    assert answer.json() == {"code": 401, "message": "signature is already expired"}


async def test_expired_upload_writes_nothing(sandbox, web, folder):
    url = await done(sandbox.upload_url(f"{folder}/f", use_signature_expiration=1))
    await asyncio.sleep(2.1)
    answer = await web.post(by_host_name(url, sandbox), files={"file": b"x"})
    assert (answer.status_code, answer.json()["message"]) == (401, "signature is already expired")
    assert not await done(sandbox.files.exists(f"{folder}/f"))


async def test_signature_is_for_one_path_and_one_direction(sandbox, web, folder):
    await done(sandbox.files.write(f"{folder}/f", "x"))
    await done(sandbox.files.write(f"{folder}/g", "y"))
    url = by_host_name(await done(sandbox.download_url(f"{folder}/f")), sandbox)
    answer = await web.get(url.replace("%2Ff&", "%2Fg&").replace("/f&", "/g&"))
    assert (answer.status_code, answer.json()) == (401, {"code": 401, "message": "invalid signature"})
    answer = await web.post(url, files={"file": b"z"})
    assert answer.status_code == 401
    assert await done(sandbox.files.read(f"{folder}/f")) == "x"


async def test_without_signature(sandbox, web, folder):
    url = f"{SCHEME}://{sandbox.get_host(49983)}/files?path={folder}/f"
    answer = await web.get(url)
    assert (answer.status_code, answer.json()) == (401, {"code": 401, "message": "missing signature query parameter"})


async def test_awkward_names(sandbox, web, folder, address):
    for name in ("with space", "plus+and&amp", "ü日本", "percent%20"):
        await done(sandbox.files.write(f"{folder}/{name}", name))
        url = await done(sandbox.download_url(f"{folder}/{name}"))
        answer = await web.get(address(url, sandbox))
        assert (answer.status_code, answer.text) == (200, name)


async def test_range(sandbox, web, folder, address):
    await done(sandbox.files.write(f"{folder}/f", "0123456789"))
    url = await done(sandbox.download_url(f"{folder}/f"))
    answer = await web.get(address(url, sandbox), headers={"range": "bytes=2-4"})
    assert (answer.status_code, answer.text, answer.headers["content-range"]) == (206, "234", "bytes 2-4/10")
