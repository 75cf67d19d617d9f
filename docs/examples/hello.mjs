// A program written for E2B: nothing in it knows of Isthmus.
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create({ timeoutMs: 120_000, metadata: { program: 'hello.mjs' } })
try {
  console.log('sandbox   ', sandbox.sandboxId)

  await sandbox.commands.run('for i in 1 2 3; do echo line $i; done; uname -s', {
    onStdout: (text) => console.log('streamed  ', text.trim().replaceAll('\n', ' | ')),
  })

  const seen = []
  const arrived = Promise.withResolvers?.() ?? deferred()
  const watch = await sandbox.files.watchDir('/home/user', (event) => {
    seen.push(`${event.type} ${event.name}`)
    if (event.type === 'write') arrived.resolve()
  })
  await sandbox.files.write('greeting.txt', 'hello from JavaScript')
  await arrived.promise
  await watch.stop()
  console.log('file      ', await sandbox.files.read('greeting.txt'))
  console.log('watched   ', seen)

  let screen = ''
  const terminal = await sandbox.pty.create({
    cols: 80,
    rows: 24,
    onData: (data) => (screen += new TextDecoder().decode(data)),
  })
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('tput cols; exit\n'))
  await terminal.wait()
  console.log('terminal  ', screen.includes('80') ? '80 columns' : screen)

  const server = await sandbox.commands.run('python3 -m http.server 8000', { background: true })
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' }
  for (let attempt = 0; attempt < 50; attempt++) {
    const answer = await fetch(`${process.env.E2B_SANDBOX_URL}/greeting.txt`, { headers })
    if (answer.ok) {
      console.log('port 8000 ', await answer.text())
      break
    }
    await new Promise((next) => setTimeout(next, 100))
  }
  await server.kill()
} finally {
  await sandbox.kill()
}
console.log('killed    ', !(await sandbox.isRunning()))

function deferred() {
  const d = {}
  d.promise = new Promise((resolve) => (d.resolve = resolve))
  return d
}
