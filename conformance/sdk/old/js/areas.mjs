// The areas of the JavaScript client that every version is asked for. A version that lacks one says `absent`:
// what a version offers is found by looking at what its module exports, never by its number.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { absent, eventually, failure, listed } from './support.mjs'

const text = 'grüße, 世界\n'

export const areas = {
  async create({ Sandbox, box, marker }) {
    assert.match(box.sandboxId, /^[a-z0-9]+(-[a-z0-9]+)?$/)
    const { stdout } = await box.commands.run('echo "$MARKER"; whoami; pwd')
    assert.equal(stdout, `${marker}\nuser\n/home/user\n`)
    const refused = await failure(Sandbox.create('no-such-template'))
    assert.match(refused.message, /no-such-template/)
  },

  async secure({ Sandbox }) {
    const box = await Sandbox.create({ secure: true, timeoutMs: 60_000 })
    try {
      if (!box.envdAccessToken && !box.connectionConfig?.headers?.['X-Access-Token']) absent()
      const { stdout } = await box.commands.run('echo secure')
      assert.equal(stdout, 'secure\n')
      await box.files.write('secret.txt', text)
      assert.equal(await box.files.read('secret.txt'), text)
      const open = await fetch(`https://${box.getHost(49983)}/files?path=secret.txt&username=user`)
      assert.equal(open.status, 401, 'without the token nobody reads')
      await open.body?.cancel()
    } finally {
      await box.kill()
    }
  },

  async connect({ Sandbox, box }) {
    await box.files.write('before.txt', text)
    const again = await Sandbox.connect(box.sandboxId)
    assert.equal(again.sandboxId, box.sandboxId)
    assert.equal(await again.files.read('before.txt'), text)
    assert.equal(await again.isRunning(), true)
  },

  async list({ e2b, box, marker }) {
    const mine = await listed(e2b, { marker })
    assert.deepEqual(mine.map((s) => s.sandboxId.split('-')[0]), [box.sandboxId.split('-')[0]])
    assert.equal(mine[0].metadata['a b'], 'c&d=é')
    assert.deepEqual(await listed(e2b, { marker: 'nobody' }), [])
  },

  async info({ Sandbox, box, marker }) {
    if (!box.getInfo && !Sandbox.getInfo) absent()
    const info = box.getInfo ? await box.getInfo() : await Sandbox.getInfo(box.sandboxId)
    assert.equal(info.sandboxId.split('-')[0], box.sandboxId.split('-')[0])
    assert.equal(info.metadata.marker, marker)
    assert.ok(info.endAt > info.startedAt)
  },

  async commands({ e2b, box }) {
    const lines = []
    const result = await box.commands.run('echo out; echo err >&2', { onStdout: (chunk) => void lines.push(chunk) })
    assert.deepEqual([lines.join(''), result.stdout, result.stderr, result.exitCode], ['out\n', 'out\n', 'err\n', 0])
    const failed = await failure(box.commands.run('echo no >&2; exit 3'))
    assert.ok(failed instanceof e2b.CommandExitError)
    assert.equal(failed.exitCode, 3)
    const long = await box.commands.run('seq 1 200000', { timeoutMs: 30_000 })
    assert.equal(long.stdout.length, 1288895)
    const as = await box.commands.run('whoami; pwd; echo $A', { user: 'root', cwd: '/tmp', envs: { A: 'b' } })
    assert.equal(as.stdout, 'root\n/tmp\nb\n')
  },

  async background({ box }) {
    const sleeper = await box.commands.run('read line; echo "got $line"; sleep 60', { background: true, stdin: true })
    assert.ok((await box.commands.list()).some((p) => p.pid === sleeper.pid))
    await box.commands.sendStdin(sleeper.pid, 'hello\n')
    const attached = await box.commands.connect(sleeper.pid)
    await sleeper.disconnect()
    assert.equal(await box.commands.kill(sleeper.pid), true)
    assert.notEqual((await failure(attached.wait())).exitCode, 0)
    assert.equal(await box.commands.kill(sleeper.pid), false)
  },

  async files({ e2b, box }) {
    const bytes = randomBytes(3_000_000)
    await box.files.write('d/bytes', new Blob([bytes]))
    assert.deepEqual(Buffer.from(await box.files.read('d/bytes', { format: 'bytes' })), bytes)
    const parts = []
    for await (const part of await box.files.read('d/bytes', { format: 'stream' })) parts.push(part)
    assert.deepEqual(Buffer.concat(parts), bytes)
    await box.files.write('d/ü.txt', text)
    assert.deepEqual((await box.files.list('d')).map((f) => f.name).sort(), ['bytes', 'ü.txt'])
    assert.equal(await box.files.makeDir('d/e'), true)
    assert.equal(await box.files.makeDir('d/e'), false)
    await box.files.rename('d/ü.txt', 'd/e/new.txt')
    assert.equal(await box.files.exists('d/ü.txt'), false)
    assert.equal(await box.files.read('d/e/new.txt'), text)
    await box.files.remove('d')
    assert.equal(await box.files.exists('d'), false)
    assert.ok((await failure(box.files.read('d/bytes'))) instanceof e2b.NotFoundError)
  },

  async 'many files'({ box }) {
    const files = [1, 2, 3].map((n) => ({ path: `many/${n}.txt`, data: `${n}${text}` }))
    await (box.files.writeFiles ? box.files.writeFiles(files) : box.files.write(files))
    for (const file of files) assert.equal(await box.files.read(file.path), file.data)
  },

  async 'file info'({ box }) {
    if (!box.files.getInfo) absent()
    await box.files.write('info.txt', text)
    const info = await box.files.getInfo('info.txt')
    assert.equal(info.path, '/home/user/info.txt')
    assert.equal(info.size, Buffer.byteLength(text))
    assert.equal(info.owner, 'user')
  },

  async watch({ e2b, box }) {
    await box.files.makeDir('watched')
    const seen = []
    const handle = await box.files.watchDir('watched', (event) => void seen.push(event))
    await box.files.write('watched/new.txt', text)
    await eventually(() => seen.some((e) => e.type === e2b.FilesystemEventType.CREATE && e.name === 'new.txt'))
    await handle.stop()
  },

  async 'recursive watch'({ e2b, box }) {
    // Unknown options are ignored, so only the method's own text tells.
    if (!/recursive/.test(String(box.files.watchDir))) absent()
    await box.files.makeDir('deep/er')
    const seen = []
    const handle = await box.files.watchDir('deep', (event) => void seen.push(event), { recursive: true })
    await box.files.write('deep/er/new.txt', text)
    await eventually(() => seen.some((e) => e.type === e2b.FilesystemEventType.CREATE && e.name === 'er/new.txt'))
    await handle.stop()
  },

  async pty({ box }) {
    let screen = ''
    const decoder = new TextDecoder()
    const terminal = await box.pty.create({ cols: 81, rows: 25, onData: (data) => void (screen += decoder.decode(data)) })
    const type = (line) => box.pty.sendInput(terminal.pid, new TextEncoder().encode(line))
    await type('stty size\n')
    await eventually(() => screen.includes('25 81'))
    await box.pty.resize(terminal.pid, { cols: 100, rows: 30 })
    await type('stty size\n')
    await eventually(() => screen.includes('30 100'))
    await type('exit 7\n')
    assert.equal((await failure(terminal.wait())).exitCode, 7)
  },

  async ports({ box }) {
    await box.files.write('site/index.html', text)
    await box.commands.run('python3 -m http.server 8000 --bind 127.0.0.1 --directory site', { background: true })
    const url = `https://${box.getHost(8000)}/`
    const page = await eventually(async () => {
      const answer = await fetch(url)
      const body = await answer.text()
      return answer.status === 200 && body
    })
    assert.equal(page, text)
    assert.equal((await fetch(`https://${box.getHost(8001)}/`)).status, 502, 'nobody listens there')
  },

  async 'signed urls'({ Sandbox }) {
    const box = await Sandbox.create({ secure: true, timeoutMs: 60_000 })
    // Versions before signing was the default want to be asked for it.
    const options = { useSignature: true }
    try {
      const form = new FormData()
      form.append('file', new Blob([text]), 'up.txt')
      const up = await fetch(await box.uploadUrl('up.txt', options), { method: 'POST', body: form })
      assert.equal(up.status, 200, await up.text())
      const down = await fetch(await box.downloadUrl('up.txt', options))
      assert.equal(await down.text(), text)
      const short = await box.downloadUrl('up.txt', { ...options, useSignatureExpiration: 1 })
      await eventually(async () => (await fetch(short)).status === 401)
    } finally {
      await box.kill()
    }
  },

  async metrics({ box }) {
    if (!box.getMetrics) absent()
    const [first] = await eventually(async () => {
      const all = await box.getMetrics()
      return all.length > 0 && all
    })
    assert.ok(first.cpuCount > 0)
    assert.ok(first.memTotal > 0)
  },

  async git({ box }) {
    if (!box.git) absent()
    await box.git.init('repository')
    await box.files.write('repository/a.txt', text)
    await box.git.configureUser('A', 'a@example.com', { path: 'repository' })
    await box.git.add('repository')
    await box.git.commit('repository', 'first')
    assert.equal((await box.git.status('repository')).isClean, true)
  },

  async timeout({ Sandbox, box }) {
    await box.setTimeout(200_000)
    if (box.getInfo) {
      const left = (await box.getInfo()).endAt - Date.now()
      assert.ok(left > 150_000 && left < 210_000, `${left} ms are left`)
    }
    const short = await Sandbox.create({ timeoutMs: 60_000 })
    await short.setTimeout(1_000)
    await eventually(async () => !(await short.isRunning()))
  },

  async errors({ e2b, Sandbox, box }) {
    assert.ok((await failure(box.files.read('/none'))) instanceof e2b.NotFoundError)
    const slow = await failure(box.commands.run('sleep 30', { timeoutMs: 300 }))
    assert.ok(slow instanceof e2b.TimeoutError, `a slow command ended with ${slow}`)
    const stranger = await failure(Sandbox.connect('i00000000000000000000'))
    assert.ok(stranger instanceof e2b.NotFoundError || /not found|404/i.test(stranger.message), `an unknown sandbox gave ${stranger}`)
    const unknown = await failure(Sandbox.create({ apiKey: `e2b_${'f'.repeat(40)}` }))
    assert.ok(unknown instanceof e2b.AuthenticationError || unknown instanceof e2b.SandboxError, `a wrong key gave ${unknown}`)
    assert.match(unknown.message, /401|nauthorized|key/i)
  },

  // The last one: it ends the sandbox that all areas share.
  async kill({ e2b, Sandbox, box }) {
    const killed = await box.kill()
    assert.ok(killed === true || killed === undefined)
    assert.equal(await Sandbox.kill(box.sandboxId), false)
    assert.equal(await box.isRunning(), false)
    const after = await failure(box.commands.run('true'))
    assert.ok(after instanceof e2b.TimeoutError || after instanceof e2b.SandboxError, `it gave ${after}`)
  },
}
