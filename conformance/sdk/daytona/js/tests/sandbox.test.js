// What the vendor's own SDK, under both of its names, can do with a sandbox must work on the simulated cloud.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const apiUrl = process.env.DAYTONA_SIMULATOR + '/api'
const apiKey = process.env.DAYTONA_SIMULATOR_KEY

for (const name of ['@daytonaio/sdk', '@daytona/sdk']) {
  const sdk = await import(name)
  const client = new sdk.Daytona({ apiKey, apiUrl, target: 'us' })
  const named = (word) => `${word}-${name.split('/')[0].slice(1)}`

  test(`${name}: a sandbox from its create to its end`, async (t) => {
    const sandbox = await client.create({ name: named('life'), labels: { suite: named('life') }, envVars: { COLOUR: 'blue' }, autoStopInterval: 0 })
    t.after(() => sandbox.delete(60).catch(() => {}))
    assert.equal(sandbox.state, 'started')
    assert.equal((await client.get(named('life'))).id, sandbox.id)

    const done = await sandbox.process.executeCommand('echo $COLOUR $MORE; echo bad >&2; pwd; exit 3', '/tmp', { MORE: 'sky' })
    assert.equal(done.exitCode, 3)
    assert.deepEqual(done.result.trim().split('\n'), ['blue sky', 'bad', '/tmp'])
    await assert.rejects(sandbox.process.executeCommand('sleep 60', undefined, undefined, 1), sdk.DaytonaTimeoutError)

    const listed = []
    for await (const one of client.list({ labels: { suite: named('life') } })) listed.push(one.id)
    assert.deepEqual(listed, [sandbox.id])
    await sandbox.setLabels({ suite: 'another' })
    for await (const one of client.list({ labels: { suite: named('life') } })) assert.notEqual(one.id, sandbox.id)

    await assert.rejects(client.create({ name: named('life') }), sdk.DaytonaConflictError ?? sdk.DaytonaError)
    await sandbox.setAutostopInterval(30)
    await sandbox.setTtl(60)
    await sandbox.refreshData()
    assert.equal(sandbox.autoStopInterval, 30)
    assert.ok(Date.parse(sandbox.autoDestroyAt) > Date.now())
    await sandbox.delete(60, true)
    await assert.rejects(client.get(named('life')), sdk.DaytonaNotFoundError)
  })

  test(`${name}: sessions, streams and input`, async (t) => {
    const sandbox = await client.create({ name: named('streams') })
    t.after(() => sandbox.delete(60))
    const p = sandbox.process
    await p.createSession('one')
    await p.executeSessionCommand('one', { command: 'cd /tmp; KEPT=yes' })
    const state = await p.executeSessionCommand('one', { command: 'pwd; echo $KEPT; echo bad >&2' })
    assert.deepEqual([state.stdout, state.stderr, state.exitCode], ['/tmp\nyes\n', 'bad\n', 0])

    const { cmdId } = await p.executeSessionCommand('one', {
      command: 'read line; for i in 1 2 3; do echo "out $i $line"; echo "err $i" >&2; done; (exit 7)', runAsync: true,
    })
    assert.equal((await p.getSessionCommand('one', cmdId)).exitCode ?? null, null)
    let out = '', err = ''
    const following = p.getSessionCommandLogs('one', cmdId, (text) => { out += text }, (text) => { err += text })
    await p.sendSessionCommandInput('one', cmdId, 'päper\n')
    await following
    assert.equal(out, 'out 1 päper\nout 2 päper\nout 3 päper\n')
    assert.equal(err, 'err 1\nerr 2\nerr 3\n')
    assert.equal((await p.getSessionCommand('one', cmdId)).exitCode, 7)
    const logs = await p.getSessionCommandLogs('one', cmdId)
    assert.deepEqual([logs.stdout, logs.stderr], [out, err])
    await assert.rejects(p.sendSessionCommandInput('one', cmdId, 'late'), sdk.DaytonaError)

    assert.deepEqual((await p.listSessions()).map((one) => one.sessionId), ['one'])
    await p.deleteSession('one')
    await assert.rejects(p.getSession('one'), sdk.DaytonaNotFoundError)
  })

  test(`${name}: a terminal`, async (t) => {
    const sandbox = await client.create({ name: named('terminal') })
    t.after(() => sandbox.delete(60))
    let text = ''
    const decoder = new TextDecoder()
    const terminal = await sandbox.process.createPty({
      id: 'pty', cols: 70, rows: 20, envs: { WORD: 'carried' }, onData: (data) => { text += decoder.decode(data, { stream: true }) },
    })
    await terminal.sendInput('stty size; echo $WORD\n')
    await until(() => /20 70[^]*carried\r/.test(text))
    await terminal.resize(97, 31)
    await terminal.sendInput('stty size\n')
    await until(() => text.includes('31 97'))
    assert.equal((await sandbox.process.listPtySessions()).length, 1)
    await terminal.sendInput('exit 5\n')
    assert.equal((await terminal.wait()).exitCode, 5)
  })

  test(`${name}: files both ways`, async (t) => {
    const sandbox = await client.create({ name: named('files') })
    t.after(() => sandbox.delete(60))
    const fs = sandbox.fs
    const big = Buffer.alloc(3 << 20, 'a line of a file\r\n--boundary')
    await fs.createFolder('/tmp/some', '755')
    await fs.uploadFiles([{ source: Buffer.from('one'), destination: '/tmp/some/one.txt' }, { source: big, destination: '/tmp/some/more/big' }])
    assert.ok(big.equals(await fs.downloadFile('/tmp/some/more/big')))
    const both = await fs.downloadFiles([{ source: '/tmp/some/one.txt' }, { source: '/tmp/some/none' }])
    assert.equal(both[0].result.toString(), 'one')
    assert.ok(both[1].error)
    const list = await fs.listFiles('/tmp/some')
    assert.deepEqual(list.map((one) => [one.name, one.isDir]).sort(), [['more', true], ['one.txt', false]])
    const info = await fs.getFileDetails('/tmp/some/one.txt')
    assert.deepEqual([info.size, info.owner], [3, 'daytona'])
    await fs.setFilePermissions('/tmp/some/one.txt', { mode: '600' })
    assert.equal((await fs.getFileDetails('/tmp/some/one.txt')).permissions, '0600')
    await fs.moveFiles('/tmp/some/one.txt', '/tmp/some/two.txt')
    assert.deepEqual((await fs.searchFiles('/tmp/some', '*.txt')).files, ['/tmp/some/two.txt'])
    assert.equal((await fs.findFiles('/tmp/some', 'one'))[0].line, 1)
    await assert.rejects(fs.downloadFile('/tmp/some/one.txt'), sdk.DaytonaNotFoundError)
    await fs.deleteFile('/tmp/some', true)
    await assert.rejects(fs.getFileDetails('/tmp/some'), sdk.DaytonaNotFoundError)
  })

  test(`${name}: previews with tokens`, async (t) => {
    const sandbox = await client.create({ name: named('preview') })
    t.after(() => sandbox.delete(60))
    await sandbox.process.createSession('server')
    await sandbox.process.executeSessionCommand('server', { command: 'python3 -m http.server 8000 --bind 127.0.0.1 --directory /etc', runAsync: true })
    const standard = await sandbox.getPreviewLink(8000)
    const signed = await sandbox.getSignedPreviewUrl(8000, 300)
    await until(async () => (await ask(standard.url, { 'x-daytona-preview-token': standard.token })) === 200)
    assert.equal(await ask(standard.url), 307)
    assert.equal(await ask(standard.url, { 'x-daytona-preview-token': 'wrong' }), 307)
    assert.equal(await ask(signed.url), 200)
    await sandbox.expireSignedPreviewUrl(8000, signed.token)
    assert.equal(await ask(signed.url), 307)
  })

  test(`${name}: the typed errors`, async () => {
    const stranger = new sdk.Daytona({ apiKey: 'dtn_wrong', apiUrl, target: 'us' })
    await assert.rejects(stranger.create({}), sdk.DaytonaAuthenticationError ?? sdk.DaytonaError)
    for (const [fault, type] of [['rate limit', sdk.DaytonaRateLimitError], ['capacity', sdk.DaytonaError], ['outage', sdk.DaytonaError]]) {
      const switched = await fetch(process.env.DAYTONA_SIMULATOR + '/_simulator/faults', {
        method: 'POST', body: JSON.stringify({ fault, operation: 'create', times: 1 }),
      })
      assert.equal(switched.status, 201)
      await assert.rejects(client.create({ name: named('never') }), type)
    }
    await assert.rejects(client.create({ image: 'debian:12', resources: { cpu: 64 } }), /maximum allowed per sandbox/)
    await assert.rejects(client.create({ snapshot: 'no-such-snapshot' }), /not found/)
  })
}

// What is the same in both is tried with the newest.
{
  const name = '@daytonaio/sdk'
  const sdk = await import(name)
  const client = new sdk.Daytona({ apiKey, apiUrl, target: 'us' })
  const named = (word) => `newest-${word}`

  test(`${name}: stops, starts and archives`, async (t) => {
    const sandbox = await client.create({ name: named('stops') })
    t.after(() => sandbox.delete(60))
    await sandbox.fs.uploadFile(Buffer.from('kept'), '/tmp/kept')
    await sandbox.stop()
    assert.equal(sandbox.state, 'stopped')
    await assert.rejects(sandbox.process.executeCommand('true'), /Is the Sandbox started/)
    await sandbox.start()
    assert.equal(sandbox.state, 'started')
    assert.equal((await sandbox.process.executeCommand('cat /tmp/kept')).result, 'kept')
    await assert.rejects(sandbox.archive(), /state/)
    await sandbox.stop()
    await sandbox.archive()
    await until(async () => { await sandbox.refreshData(); return sandbox.state === 'archived' })
    await sandbox.start()
    assert.equal((await sandbox.process.executeCommand('cat /tmp/kept')).result, 'kept')
    await assert.rejects(sandbox.pause(), /not supported for sandbox class/)
    await assert.rejects(sandbox.fork(), /not supported for sandbox class/)
  })

  test(`${name}: a virtual machine is paused with its memory`, async (t) => {
    const sandbox = await client.create({ name: named('machine'), snapshot: 'daytona-vm-small' })
    t.after(() => sandbox.delete(60))
    const counted = async () => Number((await sandbox.process.executeCommand('cat /tmp/count')).result)
    await sandbox.process.createSession('counts')
    await sandbox.process.executeSessionCommand('counts', { command: 'n=0; while sleep 0.05; do n=$((n+1)); echo $n >/tmp/next; mv /tmp/next /tmp/count; done', runAsync: true })
    await until(async () => (await sandbox.process.executeCommand('test -e /tmp/count')).exitCode === 0)
    await sandbox.pause()
    assert.equal(sandbox.state, 'paused')
    await assert.rejects(sandbox.process.executeCommand('true'), sdk.DaytonaError)
    await sandbox.start()
    const before = await counted()
    assert.ok(before > 0)
    await until(async () => (await counted()) > before)
  })

  test(`${name}: snapshots`, async (t) => {
    const sandbox = await client.create({ name: named('copied') })
    t.after(() => sandbox.delete(60))
    await sandbox.fs.uploadFile(Buffer.from('kept'), '/tmp/kept')
    const copied = named('copy')
    await sandbox.createSnapshot(copied)
    const snapshot = await client.snapshot.get(copied)
    t.after(() => client.snapshot.delete(snapshot).catch(() => {}))
    assert.deepEqual([snapshot.state, snapshot.sourceSandboxId ?? sandbox.id], ['active', sandbox.id])
    await assert.rejects(sandbox.createSnapshot(copied), /already exists/)
    const copy = await client.create({ name: named('copies'), snapshot: copied })
    t.after(() => copy.delete(60).catch(() => {}))
    assert.equal((await copy.process.executeCommand('cat /tmp/kept')).result, 'kept')
    const all = []
    for (let page = 1, pages = 1; page <= pages; page++) {
      const part = await client.snapshot.list(page, 2)
      assert.ok(part.items.length <= 2)
      pages = part.totalPages
      all.push(...part.items.map((one) => one.name))
    }
    assert.ok(all.includes(copied) && all.includes('daytona-small'))
    await copy.delete(60, true)
    await client.snapshot.delete(snapshot)
    await assert.rejects(client.snapshot.get(copied), sdk.DaytonaNotFoundError)
    const made = await client.snapshot.create({ name: named('made'), image: 'python:3.12', resources: { cpu: 2, memory: 1, disk: 4 } })
    assert.deepEqual([made.state, made.cpu, made.mem, made.disk], ['active', 2, 1, 4])
    await client.snapshot.delete(made)
    const general = await client.snapshot.get('daytona-small')
    await assert.rejects(client.snapshot.delete(general), /general/)
  })

  test(`${name}: the settings of the network`, async (t) => {
    const sandbox = await client.create({ name: named('network'), networkBlockAll: true })
    t.after(() => sandbox.delete(60))
    const seen = async () => {
      await sandbox.refreshData()
      return [sandbox.networkBlockAll, sandbox.networkAllowList ?? '']
    }
    assert.deepEqual(await seen(), [true, ''])
    await sandbox.updateNetworkSettings({ networkBlockAll: false, networkAllowList: '198.51.100.0/24,203.0.113.7/32' })
    assert.deepEqual(await seen(), [false, '198.51.100.0/24,203.0.113.7/32'])
    await assert.rejects(sandbox.updateNetworkSettings({ networkAllowList: 'nothing' }), /CIDR/)
    await sandbox.updateNetworkSettings({ networkBlockAll: false, networkAllowList: '' })
    assert.deepEqual(await seen(), [false, ''])
  })
}

// until waits for what comes about in its own time.
async function until(check) {
  for (const end = Date.now() + 60_000; !(await check());) {
    if (Date.now() > end) throw new Error('it did not come about')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

// ask fetches a preview: the host's name is only known to the simulator, so that the address is told apart from it.
async function ask(url, headers = {}) {
  const { request } = await import('node:http')
  const { hostname, port, host } = new URL(url)
  assert.ok(hostname.endsWith('.localhost'))
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path: '/hostname', headers: { ...headers, host } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    call.on('error', reject).end()
  })
}
