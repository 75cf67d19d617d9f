// A sandbox that dies under a call, and calls to one that is gone.

import { test } from 'node:test'
import { AuthenticationError, Sandbox as PlainSandbox, SandboxNotFoundError, TimeoutError } from 'e2b'
import { Sandbox, assert, eventually, failure, ownSandbox, sleep } from '../support.js'

test('killed during a command', async () => {
  const box = await Sandbox.create()
  const command = await box.commands.run('sleep 120', { background: true })
  const waiting = failure(() => command.wait())
  await sleep(500)
  await box.kill()
  const error = await waiting
  assert.ok(error instanceof TimeoutError, String(error))
  assert.match(error.message, /sandbox was killed or reached its end of life/)
  assert.equal(await box.isRunning(), false)
})

test('end of life during a command', async () => {
  const box = await Sandbox.create({ timeoutMs: 6000 })
  const error = await failure(() => box.commands.run('sleep 120'))
  assert.ok(error instanceof TimeoutError, String(error))
  assert.match(error.message, /sandbox was killed or reached its end of life/)
})

test('killed during a watch', async () => {
  const box = await Sandbox.create()
  const ended = []
  await box.files.watchDir('/tmp', () => {}, { timeoutMs: 0, onExit: (error) => ended.push(error) })
  await box.kill()
  await eventually(() => ended.length)
  assert.ok(ended[0] instanceof TimeoutError, String(ended[0]))
})

test('calls after kill fail in their types', async () => {
  const box = await Sandbox.create()
  await box.kill()
  assert.ok((await failure(() => box.commands.run('echo'))) instanceof SandboxNotFoundError)
  assert.ok((await failure(() => box.files.list('/'))) instanceof TimeoutError)
  assert.ok((await failure(() => box.files.read('/etc/hostname'))) instanceof TimeoutError)
  assert.ok((await failure(() => box.files.write('/tmp/x', 'x'))) instanceof TimeoutError)
  assert.ok((await failure(() => box.setTimeout(1000))) instanceof SandboxNotFoundError)
  assert.ok((await failure(() => box.fork())) instanceof SandboxNotFoundError) // also where fork is not served
})

test('wrong token', async (t) => {
  const box = await ownSandbox(t)
  for (const envdAccessToken of [undefined, 'wrong']) {
    const stranger = new PlainSandbox({
      sandboxId: box.sandboxId, sandboxDomain: box.sandboxDomain, envdVersion: '0.6.13', envdAccessToken,
    })
    for (const call of [
      () => stranger.commands.run('id'),
      () => stranger.commands.list(),
      () => stranger.files.list('/'),
      () => stranger.files.read('/etc/hostname'),
      () => stranger.files.write('/tmp/stranger', 'x'),
    ]) {
      const error = await failure(call)
      assert.ok(error instanceof AuthenticationError, `${error}`)
    }
  }
  assert.equal(await box.files.exists('/tmp/stranger'), false)
})
