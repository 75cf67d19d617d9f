// Runs the command line client that is installed in a folder through what it offers, and prints one JSON line
// for each area: {"area": "list", "result": "passed" | "failed", "detail": "..."}.
// Usage: node program.mjs FOLDER [AREA...]. The client reads E2B_DOMAIN and E2B_API_KEY by itself.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [folder, ...chosen] = process.argv.slice(2)
const client = join(folder, 'node_modules', '.bin', 'e2b')
// The client keeps its settings in the home folder, and looks for a newer version of itself.
const home = mkdtempSync(join(tmpdir(), 'isthmus-cli-'))
const environment = { ...process.env, HOME: home, NO_UPDATE_NOTIFIER: '1', CI: '1' }

/** Runs a program to its end. */
function run(command, args, input = '') {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: environment, timeout: 60_000 })
    let out = ''
    let log = ''
    child.stdout.on('data', (chunk) => (out += chunk))
    child.stderr.on('data', (chunk) => (log += chunk))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, log }))
    child.stdin.on('error', () => {}) // a client that does not read
    child.stdin.end(input)
  })
}

const e2b = (...args) => run(client, args)

/** What a command printed that must go well. */
async function must(...args) {
  const { code, out, log } = await e2b(...args)
  assert.equal(code, 0, `e2b ${args.join(' ')} ended with ${code}: ${out}${log}`)
  return out
}

/** The JSON lines, or the one JSON value, that a command printed. */
async function lines(...args) {
  return (await must(...args)).split('\n').filter((line) => line.trim()).map((line) => JSON.parse(line))
}

const create = async (...args) => (await must('sandbox', 'create', '--detach', ...args, 'base')).match(/i[a-z0-9]{20}/)[0]
const running = async () => JSON.parse(await must('sandbox', 'list', '--format', 'json')).map((s) => s.sandboxId)

let id

const areas = {
  async create() {
    id = await create('--timeout', '300')
  },

  async list() {
    assert.ok((await running()).includes(id))
    assert.match(await must('sandbox', 'list'), new RegExp(id))
    assert.equal((await must('sandbox', 'list', '--metadata', 'no=body', '--format', 'json')).includes(id), false)
  },

  async info() {
    const info = JSON.parse(await must('sandbox', 'info', id, '--format', 'json'))
    assert.equal(info.sandboxId, id)
    assert.equal(info.state, 'running')
    const left = Date.parse(info.endAt) - Date.now()
    assert.ok(left > 200_000 && left < 310_000, `${left} ms are left`)
  },

  async commands() {
    const ran = await e2b('sandbox', 'exec', '--user', 'root', '--cwd', '/tmp', '--env', 'A=b', id, 'sh', '-c', 'whoami; pwd; echo $A; exit 3')
    assert.equal(ran.code, 3, ran.log)
    assert.equal(ran.out, 'root\n/tmp\nb\n')
    const piped = await run(client, ['sandbox', 'exec', id, 'cat'], 'grüße\n')
    assert.equal(piped.out, 'grüße\n', piped.log)
  },

  async background() {
    const started = await e2b('sandbox', 'exec', '--background', id, 'sleep', '300')
    assert.equal(started.code, 0, started.log)
    const [pid] = (started.out + started.log).match(/\d+/)
    assert.match(await must('sandbox', 'exec', id, 'cat', `/proc/${pid}/cmdline`), /sleep/)
  },

  async pty() {
    // The client wants a terminal of its own: script gives it one.
    const inner = `${client} sandbox connect ${id}`
    const { out } = await run('script', ['-qec', inner, '/dev/null'], 'echo $((6*7)); exit\n')
    assert.match(out, /42/)
  },

  async logs() {
    const entries = await lines('sandbox', 'logs', id, '--format', 'json')
    assert.ok(entries.some((entry) => entry.message === 'process started'))
  },

  async metrics() {
    const deadline = Date.now() + 20_000
    let entries = []
    while (entries.length === 0 && Date.now() < deadline) entries = await lines('sandbox', 'metrics', id, '--format', 'json')
    assert.ok(entries[0]?.memTotal > 0)
  },

  async errors() {
    const unknown = await e2b('sandbox', 'info', 'i00000000000000000000')
    assert.notEqual(unknown.code, 0)
    assert.match(unknown.out + unknown.log, /wasn't found/)
    const noTemplate = await e2b('sandbox', 'create', '--detach', 'no-such-template')
    assert.notEqual(noTemplate.code, 0)
    assert.match(noTemplate.out + noTemplate.log, /no-such-template/)
  },

  async kill() {
    assert.match(await must('sandbox', 'kill', id), /has been killed/)
    const again = await e2b('sandbox', 'kill', id)
    assert.match(again.out + again.log, /wasn't found/)
    assert.equal((await running()).includes(id), false)
  },
}

for (const [area, check] of Object.entries(areas)) {
  // Every area needs the sandbox, and none may leave it.
  if (chosen.length > 0 && !chosen.includes(area) && !['create', 'kill'].includes(area)) continue
  try {
    await check()
    console.log(JSON.stringify({ area, result: 'passed' }))
  } catch (error) {
    console.log(JSON.stringify({ area, result: 'failed', detail: error.stack ?? String(error) }))
  }
}
rmSync(home, { recursive: true, force: true })
