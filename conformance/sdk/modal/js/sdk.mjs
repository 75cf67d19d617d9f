// Modal's own JavaScript SDK, unmodified, against the simulator. It says how many checks held.
import assert from "node:assert/strict";

import { AlreadyExistsError, InvalidError, ModalClient, NotFoundError } from "modal";

let checks = 0;

function same(want, got) {
  assert.deepEqual(got, want);
  checks += 1;
}

async function programs(box) {
  const p = await box.exec(["sh", "-c", "cat; echo $GREETING $MORE; echo bad >&2; exit 7"], { env: { MORE: "again" } });
  await p.stdin.writeText("input\n");
  await p.stdin.close();
  const [out, log] = await Promise.all([p.stdout.readText(), p.stderr.readText()]);
  same("input\nhello again\n", out);
  same("bad\n", log);
  same(7, await p.wait());
  const terminal = await box.exec(["sh", "-c", "tty; stty size"], { pty: true });
  same(true, /\/dev\/pts\/\d+\s+24 80/.test(await terminal.stdout.readText()));
  same(0, await terminal.wait());
  await assert.rejects(box.exec(["echo", "x".repeat(1 << 17)]), InvalidError);
  checks += 1;
}

async function files(box) {
  const content = new TextEncoder().encode("a line\n".repeat(300_000));
  await box.filesystem.makeDirectory("/tmp/some/folder");
  await box.filesystem.writeBytes(content, "/tmp/some/folder/file");
  same(content.length, (await box.filesystem.readBytes("/tmp/some/folder/file")).length);
  same(["file"], (await box.filesystem.listFiles("/tmp/some/folder")).map((entry) => entry.name));
  await box.filesystem.remove("/tmp/some", { recursive: true });
  await assert.rejects(box.filesystem.readBytes("/tmp/some/folder/file"));
  checks += 1;
}

async function ports(box) {
  const p = await box.exec(["python3", "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "/etc"]);
  const reader = p.stdout.getReader();
  await reader.read();
  const answer = await fetch((await box.tunnels())[8000].url + "/hostname");
  same(200, answer.status);
  await answer.text();
  await reader.cancel();
}

async function life(client, app, image, gpu) {
  const params = { name: "javascript", timeoutMs: 300_000, cpu: 0.5, memoryMiB: 256, encryptedPorts: [8000], env: { GREETING: "hello" }, tags: { owner: "tests" } };
  const box = await client.sandboxes.create(app, image, gpu ? { ...params, gpu } : params);
  same(Boolean(gpu), box.sandboxId.length === 25);
  await programs(box);
  await files(box);
  await ports(box);
  same(null, await box.poll());
  same({ owner: "tests" }, await (await client.sandboxes.fromId(box.sandboxId)).getTags());
  const listed = [];
  for await (const one of client.sandboxes.list({ appId: app.appId, tags: { owner: "tests" } })) listed.push(one.sandboxId);
  same([box.sandboxId], listed);
  await assert.rejects(client.sandboxes.create(app, image, gpu ? { ...params, gpu } : params), AlreadyExistsError);
  checks += 1;
  if (!gpu) {
    await box.filesystem.writeText("kept", "/root/kept");
    const copy = await client.sandboxes.create(app, await box.snapshotFilesystem(), { timeoutMs: 300_000 });
    same("kept", await copy.filesystem.readText("/root/kept"));
    await copy.terminate();
  }
  same(137, await box.terminate({ wait: true }));
}

const client = new ModalClient();
await assert.rejects(client.apps.fromName("nothing of the kind"), NotFoundError);
checks += 1;
const app = await client.apps.fromName("sdk-js", { createIfMissing: true });
const image = client.images.fromRegistry("debian:12");
await life(client, app, image);
await life(client, app, image, "T4");
client.close();
console.log(`modal for JavaScript: ${checks} checks`);
