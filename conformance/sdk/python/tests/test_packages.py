"""pip and npm, from a package server of the harness."""

from conftest import done
from environment import surroundings


async def test_pip_install(sandbox):
    index = surroundings("ISTHMUS_TEST_INDEX")
    host = index.split("/")[2].split(":")[0]
    await done(sandbox.commands.run(f"pip install --disable-pip-version-check --no-cache-dir --index-url {index}/simple/ --trusted-host {host} isthmus-sample", timeout=90))
    result = await done(sandbox.commands.run("python3 -c 'import isthmus_sample; print(isthmus_sample.GREETING)'"))
    assert result.stdout == "hello from a package\n"


async def test_npm_install(sandbox, folder):
    index = surroundings("ISTHMUS_TEST_INDEX")
    await done(sandbox.commands.run(f"npm install --no-audit --no-fund --registry {index}/npm/ isthmus-sample", cwd=folder, timeout=90))
    result = await done(sandbox.commands.run("node -e 'console.log(require(\"isthmus-sample\"))'", cwd=folder))
    assert result.stdout == "hello from a package\n"
