"""Metrics through the client, and logs over plain REST (no client method reads them)."""

import json
from datetime import datetime, timedelta, timezone

from conftest import done, eventually
from environment import API_KEY, API_URL, MEMORY_MB

KEY = {"X-API-Key": API_KEY}


async def test_metrics(sandbox):
    await done(sandbox.commands.run("head -c 50000000 /dev/zero > /tmp/some; timeout 1 sh -c 'while :; do :; done' || true"))
    samples = await eventually(lambda: sandbox.get_metrics(), interval=0.5)
    sample = samples[-1]
    assert sample.cpu_count == 2
    assert 0 < sample.mem_used < sample.mem_total == MEMORY_MB * 1024 * 1024
    assert sample.mem_cache >= 0 and sample.cpu_used_pct >= 0
    assert 0 < sample.disk_used < sample.disk_total
    assert 9 << 30 < sample.disk_total <= 10 << 30
    assert abs(datetime.now(timezone.utc) - sample.timestamp) < timedelta(minutes=2)


async def test_metrics_of_a_time_before(sandbox):
    long_ago = datetime.now(timezone.utc) - timedelta(hours=5)
    assert await done(sandbox.get_metrics(start=long_ago, end=long_ago + timedelta(minutes=1))) == []


async def test_logs(sandbox, web, token):
    await done(sandbox.commands.run(f"echo secret-{token}; exit 0", envs={"HIDDEN": f"hidden-{token}"}))
    async def logged():
        answer = await web.get(f"{API_URL}/sandboxes/{sandbox.sandbox_id}/logs", headers=KEY)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return body if any(token in entry["line"] for entry in body["logs"]) else None

    body = await eventually(logged)
    for entry in body["logs"]:
        line = json.loads(entry["line"])
        assert line["level"] in ("debug", "info", "warn", "error")
        assert isinstance(line["message"], str)
    for entry in body["logEntries"]:
        assert all(isinstance(value, str) for value in entry["fields"].values())
    assert f"hidden-{token}" not in json.dumps(body)


async def test_logs_v2(sandbox, web):
    async def logged():
        answer = await web.get(f"{API_URL}/v2/sandboxes/{sandbox.sandbox_id}/logs?direction=forward&limit=5", headers=KEY)
        assert answer.status_code == 200, answer.text
        return answer.json()["logs"]

    entries = await eventually(logged)
    assert len(entries) <= 5
    assert {"timestamp", "level", "message", "fields"} <= set(entries[0])
