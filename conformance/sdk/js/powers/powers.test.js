// Pause, resume, snapshots and live network rules, as the pool of ISTHMUS_TEST_POWERS has them: it lists what there
// is, for example "pause=memory snapshot=filesystem live_network". What is not listed must be refused by name.

import { test } from 'node:test'
import { NotFoundError, SandboxError } from 'e2b'
import { Sandbox, assert, eventually, failure, needs, ownSandbox, token } from '../support.js'

const given = 'ISTHMUS_TEST_POWERS'
const powers = Object.fromEntries((process.env[given] ?? '').split(' ').map((word) => word.split('=')))

async function refused(call, text) {
  const error = await failure(call)
  assert.ok(error instanceof SandboxError, String(error))
  assert.match(error.message, new RegExp(`400.*${text}`))
}

const state = async (box) => (await box.getInfo()).state

test('pause and connect', needs(given), async (t) => {
  const box = await ownSandbox(t, { envs: { KEPT: 'yes' } })
  if (!('pause' in powers)) return refused(() => box.pause(), 'pauseSandbox is not supported here')
  await box.files.write('/home/user/kept', 'first')
  assert.equal(await box.pause(), true)
  assert.equal(await box.betaPause(), false)
  assert.equal(await Sandbox.pause(box.sandboxId), false)
  assert.equal(await state(box), 'paused')
  assert.equal(await box.isRunning(), false)
  assert.ok((await failure(() => box.setTimeout(60_000))) instanceof NotFoundError)

  const again = await Sandbox.connect(box.sandboxId, { timeoutMs: 120_000 })
  assert.equal(await state(again), 'running')
  assert.equal(await again.files.read('/home/user/kept'), 'first')
  assert.equal((await box.commands.run('echo $KEPT')).stdout, 'yes\n')
  await box.pause()
  await box.connect()
  assert.equal(await box.isRunning(), true)
  await box.pause()
  assert.equal(await box.kill(), true)
  assert.ok((await failure(() => Sandbox.connect(box.sandboxId))) instanceof NotFoundError)
})

test('pause modes', needs(given), async (t) => {
  if (!('pause' in powers)) return
  const box = await ownSandbox(t)
  const handle = await box.commands.run('sleep 1000', { background: true })
  if (powers.pause === 'memory') {
    await box.pause({ keepMemory: true })
    await box.connect()
    assert.ok((await box.commands.list()).some((p) => p.pid === handle.pid))
  } else {
    await refused(() => box.pause({ keepMemory: true }), 'memory: true is not supported here')
    // SDKs before 2.51 send that for a plain pause().
    await box.pause({ keepMemory: true, headers: { package_version: '2.50.0' } })
    await box.connect()
  }
  await box.pause({ keepMemory: false })
  await box.connect()
  assert.deepEqual(await box.commands.list(), [])
})

test('pause at the timeout', needs(given), async (t) => {
  const lifecycle = { onTimeout: 'pause' }
  if (!('pause' in powers)) return refused(() => Sandbox.create({ lifecycle }), 'autoPause')
  const box = await ownSandbox(t, { timeoutMs: 6000, lifecycle })
  await box.files.write('/home/user/kept', 'by itself')
  await eventually(async () => (await state(box)) === 'paused')
  assert.equal((await box.getInfo()).lifecycle.onTimeout, 'pause')
  await box.connect()
  assert.equal(await box.files.read('/home/user/kept'), 'by itself')
})

test('traffic wakes', needs(given), async (t) => {
  const lifecycle = { onTimeout: 'pause', autoResume: true }
  if (powers.pause !== 'memory') return refused(() => Sandbox.create({ lifecycle }), 'autoResume')
  const box = await ownSandbox(t, { lifecycle })
  await box.files.write('/home/user/kept', 'here')
  await box.pause()
  assert.equal(await box.files.read('/home/user/kept'), 'here')
  assert.equal(await state(box), 'running')
  assert.equal((await box.getInfo()).lifecycle.autoResume, true)
})

test('snapshots', needs(given), async (t) => {
  const box = await ownSandbox(t)
  if (!('snapshot' in powers)) return refused(() => box.createSnapshot(), 'createSnapshot is not supported here')
  await box.files.write('/home/user/kept', 'first')
  const plain = await box.createSnapshot()
  const name = `case-${token()}`
  const named = await Sandbox.createSnapshot(box.sandboxId, { name })
  assert.deepEqual(named.names, [name])
  for (const reference of [plain.snapshotId, named.snapshotId]) {
    const copy = await Sandbox.create(reference)
    assert.equal(await copy.files.read('/home/user/kept'), 'first')
    await copy.kill()
  }
  const listed = await Sandbox.listSnapshots({ sandboxId: box.sandboxId }).nextItems()
  assert.deepEqual(listed.map((one) => one.snapshotId), [named.snapshotId, plain.snapshotId])
  for (const one of listed) {
    assert.equal(await Sandbox.deleteSnapshot(one.snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(one.snapshotId), false)
  }
})

test('the network of a running one', needs(given), async (t) => {
  const box = await ownSandbox(t)
  const closed = { denyOut: ['0.0.0.0/0'] }
  if (!('live_network' in powers)) return refused(() => box.updateNetwork(closed), 'updateSandboxNetwork is not supported here')
  await box.updateNetwork(closed)
  assert.deepEqual((await box.getInfo()).network.denyOut, closed.denyOut)
  await box.updateNetwork({})
})

test('network rules', needs(given, 'ISTHMUS_TEST_INTERNET'), async (t) => {
  const site = process.env.ISTHMUS_TEST_INTERNET
  const host = new URL(site).host
  const rules = (secret) => ({ rules: { [host]: [{ transform: { headers: { 'X-Conformance': secret } } }] } })
  const secret = `conformance-secret-${token()}`
  if (!('inject_headers' in powers)) return refused(() => Sandbox.create({ network: rules(secret) }), 'network.rules')
  const box = await ownSandbox(t, { network: rules(secret) })
  const heard = async () => (await box.commands.run(`curl -sS -m 20 ${site}header`)).stdout
  assert.equal(await heard(), secret)
  assert.ok(!JSON.stringify(await box.getInfo()).includes(secret))
  if (!('live_network' in powers)) return
  await box.updateNetwork(rules(`${secret}-too`))
  assert.equal(await heard(), `${secret}-too`)
  assert.ok(!JSON.stringify(await box.getInfo()).includes(secret))
  await box.updateNetwork({})
  assert.equal(await heard(), '')
})
