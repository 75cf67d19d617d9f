// Pseudo-terminals: input, resize, coming back, and their ends.

import { test } from 'node:test'
import { NotFoundError } from 'e2b'
import { assert, eventually, failure, sharedSandbox } from '../support.js'

const shared = sharedSandbox()

async function open(options = {}) {
  const terminal = { output: '' }
  const onData = (data) => {
    terminal.output += Buffer.from(data).toString()
  }
  terminal.handle = await shared.box.pty.create({ cols: 80, rows: 24, onData, ...options })
  terminal.onData = onData
  terminal.type = (text) => shared.box.pty.sendInput(terminal.handle.pid, new TextEncoder().encode(text))
  terminal.shows = (text) => eventually(() => terminal.output.includes(text))
  return terminal
}

test('size, resize and a clean end', async () => {
  const terminal = await open()
  await terminal.type('echo cols=$(tput cols) rows=$(tput lines)\n')
  await terminal.shows('cols=80 rows=24')
  await shared.box.pty.resize(terminal.handle.pid, { cols: 100, rows: 40 })
  await terminal.type('echo cols=$(tput cols) rows=$(tput lines)\n')
  await terminal.shows('cols=100 rows=40')
  await terminal.type('exit\n')
  assert.equal((await terminal.handle.wait()).exitCode, 0)
})

test('environment, user, folder and exit code', async () => {
  const terminal = await open({ envs: { ABC: '123' }, cwd: '/', user: 'root' })
  await terminal.type('echo $ABC-$TERM-$(pwd)-$(whoami)-\n')
  await terminal.shows('123-xterm-256color-/-root-')
  await terminal.type('exit 5\n')
  assert.equal((await failure(() => terminal.handle.wait())).exitCode, 5)
})

test('interrupt and end of input', async () => {
  const terminal = await open()
  // The program itself says that it runs: a Ctrl-C that comes while the shell is still starting it reaches the shell alone.
  await terminal.type("sh -c 'echo go; exec sleep 300'\n")
  await terminal.shows('go\r\n')
  await terminal.type('\x03')
  await terminal.type('echo still-$((40+2))\n')
  // An end of input that comes before the shell edits its line again is lost; its prompt says that it does.
  await eventually(() => terminal.output.split('still-42')[1]?.includes('$ '))
  await terminal.type('\x04')
  await terminal.handle.wait().catch((error) => assert.equal(error.exitCode, 130))
})

test('kill', async () => {
  const terminal = await open()
  assert.equal(await terminal.handle.kill(), true)
  assert.equal((await failure(() => terminal.handle.wait())).error, 'signal: killed')
  assert.equal(await shared.box.pty.kill(terminal.handle.pid), false)
  assert.ok((await failure(() => terminal.type('x'))) instanceof NotFoundError)
})

test('coming back', async () => {
  const terminal = await open()
  await terminal.type('export MARK=before; clear; echo re""ady\n')
  await terminal.shows('ready')
  await terminal.handle.disconnect()
  terminal.output = ''
  const again = await shared.box.pty.connect(terminal.handle.pid, { onData: terminal.onData })
  await terminal.type('echo $MARK-and-after\n')
  await terminal.shows('before-and-after')
  assert.doesNotMatch(terminal.output, /export/)
  await terminal.type('exit\n')
  assert.equal((await again.wait()).exitCode, 0)
})
