// Commands in the foreground and in the background, their input, and coming back to them.

import { test } from 'node:test'
import {
  AuthenticationError,
  CommandExitError,
  InvalidArgumentError,
  NotFoundError,
  SandboxError,
  TimeoutError,
} from 'e2b'
import { Sandbox, assert, eventually, failure, sharedSandbox, sleep, token } from '../support.js'

const shared = sharedSandbox()

test('output exactly', async () => {
  for (const text of ['hello world', '!@#$%^&*()_+-=[]{};:,.<>/?', 'one\ntwo\n\nfour', 'päivää 🙂 日本語', '']) {
    const path = `/tmp/${token()}`
    await shared.box.files.write(path, text)
    const result = await shared.box.commands.run(`cat ${path}; echo`)
    assert.deepEqual([result.stdout, result.stderr, result.exitCode, result.error], [text + '\n', '', 0, undefined])
  }
})

test('both streams, by callback while it runs', async () => {
  const out = []
  const err = []
  const path = `/tmp/${token()}`
  const result = await shared.box.commands.run(`echo one; echo bad >&2; until [ -e ${path} ]; do sleep 0.05; done; echo two`, {
    onStdout: (text) => {
      out.push(text)
      return shared.box.files.write(path, '') // the command goes on when what it said has arrived
    },
    onStderr: (text) => err.push(text),
  })
  assert.deepEqual(out, ['one\n', 'two\n'])
  assert.deepEqual(err, ['bad\n'])
  assert.deepEqual([result.stdout, result.stderr], ['one\ntwo\n', 'bad\n'])
})

test('exit codes', async () => {
  for (const code of [1, 3, 126, 255]) {
    const error = await failure(() => shared.box.commands.run(`echo out; echo err >&2; exit ${code}`))
    assert.ok(error instanceof CommandExitError)
    assert.deepEqual([error.exitCode, error.error, error.stdout, error.stderr], [code, `exit status ${code}`, 'out\n', 'err\n'])
  }
  const error = await failure(() => shared.box.commands.run('no-such-program-here'))
  assert.equal(error.exitCode, 127)
})

test('broken and split UTF-8', async () => {
  const path = `/tmp/${token()}`
  await shared.box.files.write(path, new Blob(['a'.repeat(8191), new Uint8Array([0xe2]), 'b']))
  assert.equal((await shared.box.commands.run(`cat ${path}`)).stdout, 'a'.repeat(8191) + '\ufffdb')
  const split = await shared.box.commands.run("printf '\\xe2'; sleep 0.2; printf '\\x82\\xac'")
  assert.equal(split.stdout, '€')
})

test('big output is complete', async () => {
  const lines = (await shared.box.commands.run('seq 1 300000')).stdout.split('\n')
  assert.equal(lines.length, 300_001)
  assert.equal(lines.at(-2), '300000')
})

test('user, home and folder', async () => {
  const user = await shared.box.commands.run('whoami; pwd; echo $HOME; sudo whoami')
  assert.equal(user.stdout, 'user\n/home/user\n/home/user\nroot\n')
  const root = await shared.box.commands.run('whoami; pwd', { user: 'root' })
  assert.equal(root.stdout, 'root\n/root\n')
  assert.equal((await shared.box.commands.run('pwd', { cwd: '/usr' })).stdout, '/usr\n')
  assert.ok((await failure(() => shared.box.commands.run('pwd', { cwd: '/no/such' }))) instanceof InvalidArgumentError)
  assert.ok((await failure(() => shared.box.commands.run('id', { user: 'nobody-there' }))) instanceof AuthenticationError)
})

test('variables reach the command only', async () => {
  const envs = { SECRET_NAME: "a 'quoted' $value" }
  const result = await shared.box.commands.run('echo "$SECRET_NAME"', { envs })
  assert.equal(result.stdout, "a 'quoted' $value\n")
  assert.doesNotMatch((await shared.box.commands.run('env; sudo env')).stdout, /SECRET_NAME/)
})

test('time-out ends the command', async () => {
  const mark = token()
  const error = await failure(() => shared.box.commands.run(`exec -a ${mark} sleep 300`, { timeoutMs: 1000 }))
  assert.ok(error instanceof TimeoutError, String(error))
  await eventually(async () => !(await shared.box.commands.list()).some((item) => item.args.join(' ').includes(mark)))
})

test('background, list and kill', async () => {
  const mark = token()
  const command = await shared.box.commands.run(`sleep 300 && echo ${mark}`, { background: true, cwd: '/tmp', envs: { K: 'v' } })
  const item = (await shared.box.commands.list()).find((entry) => entry.pid === command.pid)
  assert.deepEqual([item.cmd, item.args, item.cwd, item.envs], ['/bin/bash', ['-l', '-c', `sleep 300 && echo ${mark}`], '/tmp', { K: 'v' }])
  assert.equal(await command.kill(), true)
  const error = await failure(() => command.wait())
  assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed'])
  assert.equal(await command.kill(), false)
  assert.equal(await shared.box.commands.kill(999_999), false)
  assert.ok((await failure(() => shared.box.commands.run(`kill -0 ${command.pid}`))) instanceof CommandExitError)
})

test('coming back by pid', async () => {
  const path = `/tmp/${token()}`
  const first = await shared.box.commands.run(`while [ ! -e ${path} ]; do sleep 0.05; done; echo end; exit 5`, { background: true })
  await first.disconnect()
  const other = await Sandbox.connect(shared.box.sandboxId)
  const second = await other.commands.connect(first.pid)
  assert.equal(second.pid, first.pid)
  await shared.box.files.write(path, '')
  const error = await failure(() => second.wait())
  assert.deepEqual([error.exitCode, error.stdout], [5, 'end\n'])
  assert.ok((await failure(() => shared.box.commands.connect(999_999))) instanceof NotFoundError)
})

test('a late connect still gets the exit', async () => {
  const command = await shared.box.commands.run('exit 7', { background: true })
  await failure(() => command.wait())
  const late = await shared.box.commands.connect(command.pid)
  assert.equal((await failure(() => late.wait())).exitCode, 7)
})

test('no callback after disconnect', async () => {
  const path = `/tmp/${token()}`
  const seen = []
  const command = await shared.box.commands.run(`while [ ! -e ${path} ]; do sleep 0.05; done; echo late; sleep 60`, {
    background: true,
    onStdout: (text) => seen.push(text),
  })
  await command.disconnect()
  await shared.box.files.write(path, '')
  await sleep(500)
  assert.deepEqual(seen, [])
  assert.equal(await shared.box.commands.kill(command.pid), true)
})

test('stdin, as text and bytes, closed by call and by handle', async () => {
  for (const data of ['hello', '', '!@#$%^&*()', 'one\ntwo\n', new Uint8Array([0, 255, 254])]) {
    const path = `/tmp/${token()}`
    const command = await shared.box.commands.run(`cat > ${path}`, { background: true, stdin: true })
    await shared.box.commands.sendStdin(command.pid, data)
    await shared.box.commands.closeStdin(command.pid)
    assert.equal((await command.wait()).exitCode, 0)
    assert.deepEqual(Buffer.from(await shared.box.files.read(path, { format: 'bytes' })), Buffer.from(data))
  }
  const command = await shared.box.commands.run('cat', { background: true, stdin: true })
  for (let n = 0; n < 10; n++) await command.sendStdin(`${n}\n`)
  await command.closeStdin()
  assert.equal((await command.wait()).stdout, '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n')
})

test('stdin is off unless asked', async () => {
  assert.equal((await shared.box.commands.run('cat; echo end')).stdout, 'end\n')
  const command = await shared.box.commands.run('sleep 60', { background: true })
  const error = await failure(() => command.sendStdin('x'))
  assert.ok(error instanceof SandboxError)
  assert.match(error.message, /stdin/)
  await command.kill()
})

test('twenty at once', async () => {
  const results = await Promise.all(Array.from({ length: 20 }, (_, n) => shared.box.commands.run(`sleep 0.2; echo ${n}`)))
  assert.deepEqual(results.map((result) => result.stdout), Array.from({ length: 20 }, (_, n) => `${n}\n`))
})
