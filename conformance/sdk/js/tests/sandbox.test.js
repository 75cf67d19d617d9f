// Create, connect, info, time-outs, kill and list.

import { test } from 'node:test'
import { AuthenticationError, SandboxError, SandboxNotFoundError } from 'e2b'
import { Sandbox, assert, eventually, failure, memoryMB, ownSandbox, served, token } from '../support.js'

const unknown = 'idoesnotexist000000000'

test('create with nothing chosen', async (t) => {
  const box = await Sandbox.create()
  t.after(() => box.kill())
  const info = await box.getInfo()
  assert.equal(info.sandboxId, box.sandboxId)
  assert.equal(info.state, 'running')
  assert.deepEqual([info.cpuCount, info.memoryMB, info.name], [2, memoryMB, 'base'])
  const seconds = (info.endAt - info.startedAt) / 1000
  assert.ok(seconds > 290 && seconds <= 301, `${seconds} s`)
  assert.match(box.sandboxId, /^[a-z0-9]+$/)
  assert.equal((await box.commands.run('echo now')).stdout, 'now\n')
})

test('create with options', async (t) => {
  const metadata = { user: 'a b', clé: 'c&d=é' }
  const box = await ownSandbox(t, { timeoutMs: 76_500, metadata, envs: { COLOUR: 'blue green' } })
  const info = await box.getInfo()
  assert.deepEqual(info.metadata, metadata)
  const seconds = Math.round((info.endAt - info.startedAt) / 1000)
  assert.ok(seconds >= 76 && seconds <= 78, `${seconds} s`)
  assert.equal((await box.commands.run('echo $COLOUR')).stdout, 'blue green\n')
})

test('other templates, and a template that does not exist', async (t) => {
  for (const template of ['node', 'python']) {
    const box = await Sandbox.create(template)
    t.after(() => box.kill())
    assert.equal((await box.commands.run(`${template} --version`)).exitCode, 0)
  }
  const error = await failure(() => Sandbox.create('no-such-template'))
  assert.ok(error instanceof SandboxError)
  assert.match(error.message, /404.*base/)
})

test('connect reaches the same sandbox and only extends its life', async (t) => {
  const box = await ownSandbox(t, { timeoutMs: 200_000 })
  await box.files.write('/tmp/mark', 'mine')
  const before = (await box.getInfo()).endAt
  const again = await Sandbox.connect(box.sandboxId, { timeoutMs: 20_000 })
  assert.equal(await again.files.read('/tmp/mark'), 'mine')
  assert.deepEqual((await again.getInfo()).endAt, before)
  await box.connect({ timeoutMs: 600_000 })
  assert.ok((await box.getInfo()).endAt - before > 300_000)
  assert.ok((await failure(() => Sandbox.connect(unknown))) instanceof SandboxNotFoundError)
})

test('setTimeout moves the end both ways', async (t) => {
  const box = await ownSandbox(t)
  await box.setTimeout(600_000)
  const longer = (await box.getInfo()).endAt
  await box.setTimeout(30_000)
  assert.ok(longer - (await box.getInfo()).endAt > 500_000)
  assert.ok((await failure(() => Sandbox.setTimeout(unknown, 1000))) instanceof SandboxNotFoundError)
})

test('expiry ends the sandbox', async (t) => {
  const box = await ownSandbox(t, { timeoutMs: 2_000 })
  await eventually(async () => !(await box.isRunning()))
  assert.ok((await failure(() => Sandbox.getInfo(box.sandboxId))) instanceof SandboxNotFoundError)
})

test('kill twice', async () => {
  const box = await Sandbox.create()
  assert.equal(await box.isRunning(), true)
  assert.equal(await box.kill(), true)
  assert.equal(await box.kill(), false)
  assert.equal(await Sandbox.kill(box.sandboxId), false)
  assert.equal(await box.isRunning(), false)
})

test('impossible time-outs and fields that are not served', async () => {
  for (const [options, text] of [
    [{ timeoutMs: -1000 }, /400/],
    [{ timeoutMs: 25 * 3_600_000 }, /400/],
    [{ volumeMounts: { '/data': 'no-such-volume' } }, /400.*volumeMounts/],
    [{ network: { rules: { 'a.example': [{ transform: { headers: { A: '${e2b.secrets.x}' } } }] } } }, /400.*network.rules/],
  ]) {
    if (served.some((field) => text.source.endsWith('*' + field))) continue
    const error = await failure(() => Sandbox.create(options))
    assert.ok(error instanceof SandboxError, String(error))
    assert.match(error.message, text)
  }
})

test('wrong key', async () => {
  const apiKey = 'e2b_' + '0'.repeat(40)
  assert.ok((await failure(() => Sandbox.create({ apiKey }))) instanceof AuthenticationError)
  assert.ok((await failure(() => Sandbox.kill(unknown, { apiKey }))) instanceof AuthenticationError)
  assert.ok((await failure(() => Sandbox.list({ apiKey }).nextItems())) instanceof AuthenticationError)
})

test('list by pages, filters and order', async (t) => {
  const metadata = { mark: token(), 'a b': 'c&d=é', '100%': 'a+b/ü?#' }
  const ids = []
  for (let n = 0; n < 3; n++) ids.push((await ownSandbox(t, { metadata })).sandboxId)

  const pages = async (options) => {
    const found = []
    const paginator = Sandbox.list(options)
    while (paginator.hasNext) found.push((await paginator.nextItems()).map((item) => item.sandboxId))
    return found
  }
  assert.deepEqual(await pages({ query: { metadata }, limit: 1 }), ids.toReversed().map((id) => [id]))
  assert.deepEqual(await pages({ query: { metadata }, limit: 2, order: 'asc' }), [ids.slice(0, 2), ids.slice(2)])
  for (const [key, value] of Object.entries(metadata)) {
    const hits = (await pages({ query: { metadata: { [key]: value } } })).flat()
    assert.ok(ids.every((id) => hits.includes(id)), key)
    assert.deepEqual((await pages({ query: { metadata: { mark: metadata.mark, [key]: value + 'x' } } })).flat(), [])
  }
  const mark = { metadata: { mark: metadata.mark } }
  assert.equal((await pages({ query: { ...mark, state: ['running'] } })).flat().length, 3)
  assert.equal((await pages({ query: { ...mark, state: ['paused'] } })).flat().length, 0)
  assert.equal((await pages({ query: { ...mark, template: 'base' } })).flat().length, 3)
  assert.equal((await pages({ query: { ...mark, template: 'no-such' } })).flat().length, 0)
  assert.equal((await pages({ query: { ...mark, startedAfter: new Date(Date.now() + 300_000) } })).flat().length, 0)
})

test('many at once', async () => {
  const boxes = await Promise.all(Array.from({ length: 4 }, () => Sandbox.create({ timeoutMs: 60_000 })))
  assert.equal(new Set(boxes.map((box) => box.sandboxId)).size, 4)
  assert.deepEqual(await Promise.all(boxes.map((box) => box.kill())), [true, true, true, true])
})

test('metrics', async (t) => {
  const box = await ownSandbox(t)
  await box.commands.run('timeout 1 sh -c "while :; do :; done" || true')
  const samples = await eventually(async () => {
    const found = await box.getMetrics()
    return found.length ? found : undefined
  }, 30_000)
  const sample = samples.at(-1)
  assert.equal(sample.cpuCount, 2)
  assert.ok(sample.memUsed > 0 && sample.memUsed < sample.memTotal)
  assert.ok(sample.diskUsed > 0 && sample.diskUsed < sample.diskTotal)
  assert.ok(Math.abs(Date.now() - sample.timestamp) < 120_000)
})
