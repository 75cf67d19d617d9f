import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { APIError, Drive, Sandbox } from '@vercel/sandbox'
import WebSocket from 'ws'
import { account, unique, until, visit } from '../support.js'

describe('one sandbox', () => {
  let sandbox
  before(async () => {
    sandbox = await Sandbox.create({ ...account, name: unique('js'), ports: [3000], timeout: 600_000, tags: { who: 'js' }, persistent: false })
  })
  after(() => sandbox?.delete())

  test('is what was asked for', () => {
    assert.equal(sandbox.status, 'running')
    assert.equal(sandbox.persistent, false)
    assert.equal(sandbox.timeout, 600_000)
    assert.equal(sandbox.memory, 2048 * sandbox.vcpus)
    assert.deepEqual(sandbox.tags, { who: 'js' })
    assert.match(sandbox.domain(3000), /^https:\/\/.*\.vercel\.run$/)
    assert.throws(() => sandbox.domain(3001))
  })

  test('runs commands', async () => {
    const result = await sandbox.runCommand({ cmd: 'sh', args: ['-c', 'echo out; echo err >&2; echo $A; pwd; exit 3'], env: { A: 'b' } })
    assert.equal(result.exitCode, 3)
    assert.equal(await result.stdout(), 'out\nb\n/vercel/sandbox\n')
    assert.equal(await result.stderr(), 'err\n')
    const root = await sandbox.runCommand({ cmd: 'id', args: ['-u'], sudo: true, cwd: '/tmp' })
    assert.equal(await root.stdout(), '0\n')
    assert.equal((await sandbox.runCommand('no-such-program')).exitCode, 127)
    assert.equal((await sandbox.runCommand({ cmd: 'sleep', args: ['600'], timeoutMs: 200 })).exitCode, 137)
  })

  test('runs commands on their own', async () => {
    const command = await sandbox.runCommand({ cmd: 'sh', args: ['-c', 'echo one; echo two'], detached: true })
    assert.equal(command.exitCode, null)
    const seen = []
    const killed = await sandbox.runCommand({ cmd: 'sh', args: ['-c', 'echo begun; exec sleep 600'], detached: true })
    for await (const log of killed.logs()) {
      seen.push(log)
      await killed.kill('SIGTERM')
    }
    assert.deepEqual(seen, [{ stream: 'stdout', data: 'begun\n' }])
    assert.equal((await killed.wait()).exitCode, 143)
    const done = await (await sandbox.getCommand(command.cmdId)).wait()
    assert.equal(await done.stdout(), 'one\ntwo\n')
  })

  test('keeps files', async () => {
    await sandbox.mkDir('folder')
    await assert.rejects(sandbox.mkDir('folder'), APIError)
    await sandbox.writeFiles([
      { path: 'folder/a', content: Buffer.from('one') },
      { path: '/tmp/run.sh', content: '#!/bin/sh\necho ran\n', mode: 0o755 },
    ])
    assert.equal(String(await sandbox.readFileToBuffer({ path: 'folder/a' })), 'one')
    assert.equal(await sandbox.readFileToBuffer({ path: 'nothing' }), null)
    assert.equal(await (await sandbox.runCommand('/tmp/run.sh')).stdout(), 'ran\n')
    assert.deepEqual(await sandbox.fs.readdir('/vercel/sandbox/folder'), ['a'])
    assert.equal((await sandbox.fs.stat('/vercel/sandbox/folder/a')).size, 3)
    await sandbox.fs.rename('/vercel/sandbox/folder/a', '/vercel/sandbox/folder/b')
    assert.equal(await sandbox.fs.readFile('/vercel/sandbox/folder/b', 'utf8'), 'one')
    await sandbox.fs.rm('/vercel/sandbox/folder', { recursive: true })
    assert.equal(await sandbox.fs.exists('/vercel/sandbox/folder'), false)
  })

  test('has a terminal', async () => {
    const { url, token } = await sandbox.openInteractive()
    const socket = new WebSocket(`${url}?token=${token}`)
    const ended = new Promise((resolve, reject) => {
      let shown = ''
      socket.on('error', reject)
      socket.on('message', (data, binary) => {
        if (binary) {
          shown += data
          if (shown.includes('24 80') && !shown.includes('30 90')) {
            socket.send(JSON.stringify({ type: 'resize', cols: 90, rows: 30 }))
            socket.send(Buffer.from('stty size; exit 4\n'))
          }
          return
        }
        resolve({ shown, message: JSON.parse(String(data)) })
      })
    })
    await new Promise((resolve) => socket.on('open', resolve))
    socket.send(JSON.stringify({ type: 'start', command: 'sh', args: [], env: ['TERM=dumb'], cwd: '/tmp', cols: 80, rows: 24 }))
    socket.send(Buffer.from('stty size\n'))
    const { shown, message } = await ended
    assert.match(shown, /30 90/)
    assert.deepEqual(message, { type: 'exit', code: 4 })
    socket.close()
  })

  test('serves its port', async () => {
    await sandbox.runCommand({ cmd: 'python3', args: ['-m', 'http.server', '3000', '--directory', '/etc'], detached: true })
    const answer = await until(async () => {
      const got = await visit(sandbox.domain(3000), '/hostname')
      return got.status === 200 && got
    })
    assert.notEqual(answer.text, '')
    const first = sandbox.domain(3000)
    await sandbox.update({ ports: [3000, 3001] })
    assert.equal(sandbox.domain(3000), first)
    await sandbox.update({ ports: [3001] })
    assert.throws(() => sandbox.domain(3000), 'ports are replaced as a whole')
    assert.equal((await visit(first)).status, 404)
  })

  test('can be changed', async () => {
    await sandbox.extendTimeout(60_000)
    assert.equal(sandbox.currentSession().timeout, 660_000)
    await assert.rejects(sandbox.extendTimeout(500), (error) => error.json.error.code === 'sandbox_timeout_invalid')
    await sandbox.update({ tags: { who: 'js', more: 'yes' } })
    assert.deepEqual((await Sandbox.get({ ...account, name: sandbox.name, resume: false })).tags, { who: 'js', more: 'yes' })
  })

  test('makes users', async () => {
    const alice = await sandbox.createUser('alice')
    assert.equal(await (await alice.runCommand('whoami')).stdout(), 'alice\n')
    await alice.writeFiles([{ path: 'hello', content: Buffer.from('hi') }])
    assert.equal(await (await alice.runCommand('stat', ['-c', '%U', '/home/alice/hello'])).stdout(), 'alice\n')
  })
})

describe('the network', () => {
  test('follows its policy', async () => {
    const sandbox = await Sandbox.create({ ...account, networkPolicy: 'deny-all', persistent: false })
    try {
      assert.equal(sandbox.networkPolicy, 'deny-all')
      const policy = {
        allow: { 'api.example.com': [{ transform: [{ headers: { authorization: 'Bearer secret' } }] }], '*.example.org': [] },
        subnets: { allow: ['198.51.100.0/24'], deny: ['198.51.100.7/32'] },
      }
      await sandbox.update({ networkPolicy: policy })
      const seen = (await Sandbox.get({ ...account, name: sandbox.name, resume: false })).networkPolicy
      assert.deepEqual(seen.allow['api.example.com'], [{ transform: [{ headers: { authorization: '<redacted>' } }] }])
      assert.deepEqual(seen.subnets, policy.subnets)
    } finally {
      await sandbox.delete()
    }
  })
})

describe('persistence', () => {
  test('stops, resumes, forks and snapshots', async () => {
    const name = unique('kept')
    const sandbox = await Sandbox.create({ ...account, name, timeout: 600_000 })
    assert.equal(sandbox.persistent, true, 'is what the vendor does when nothing is said')
    await sandbox.runCommand('sh', ['-c', 'echo kept > kept'])
    const { status, snapshot } = await sandbox.stop()
    assert.equal(status, 'stopped')
    assert.ok(snapshot.id)
    const looked = await Sandbox.get({ ...account, name, resume: false })
    assert.equal(looked.status, 'stopped', 'a look boots nothing')
    assert.equal(await (await looked.runCommand('cat', ['kept'])).stdout(), 'kept\n', 'a command does')

    const taken = await looked.snapshot({ expiration: 0 })
    assert.equal(taken.expiresAt, undefined)
    const copy = await Sandbox.create({ ...account, source: { type: 'snapshot', snapshotId: taken.snapshotId }, persistent: false })
    assert.equal(await (await copy.runCommand('cat', ['kept'])).stdout(), 'kept\n')
    await copy.stop()
    const fork = await Sandbox.fork({ ...account, sourceSandbox: name, persistent: false })
    assert.equal(await (await fork.runCommand('cat', ['kept'])).stdout(), 'kept\n')
    await fork.delete()
    await copy.delete()
    assert.equal((await sandbox.listSnapshots()).snapshots.length, 2)
    assert.equal((await sandbox.listSessions()).sessions.length, 2)
    await sandbox.delete({ deleteOrphanSnapshots: true })
    await assert.rejects(Sandbox.get({ ...account, name }), (error) => error.response.status === 404)
    await assert.rejects(
      Sandbox.create({ ...account, source: { type: 'snapshot', snapshotId: taken.snapshotId } }),
      (error) => error.response.status === 410 && error.json.error.code === 'snapshot_not_found',
    )
  })

  test('a sandbox that is not persistent is over when it stops', async () => {
    const sandbox = await Sandbox.create({ ...account, persistent: false })
    const command = await sandbox.runCommand({ cmd: 'sleep', args: ['600'], detached: true })
    const session = sandbox.currentSession()
    const said = new PassThrough()
    const running = session.runCommand({ cmd: 'sh', args: ['-c', 'echo begun; exec sleep 600'], stdout: said })
    const waiting = assert.rejects(running, (error) => error.code === 'sandbox_stopped')
    await once(said, 'data')
    await sandbox.stop()
    await waiting
    await assert.rejects(session.runCommand('true'), (error) => error.response.status === 410)
    await assert.rejects(
      async () => { for await (const _ of command.logs()) {} },
      (error) => error.response.status === 410,
      'logs are gone with the session',
    )
    await sandbox.delete()
  })
})

describe('drives', () => {
  test('keep what sandboxes wrote', async () => {
    const drive = await Drive.getOrCreate({ ...account, name: unique('drive') })
    const data = async (mount, script) => {
      const sandbox = await Sandbox.create({ ...account, persistent: false, mounts: { '/data': mount } })
      try {
        const result = await sandbox.runCommand('sh', ['-c', script])
        return [result.exitCode, await result.stdout()]
      } finally {
        await sandbox.delete()
      }
    }
    assert.deepEqual(await data(drive, 'mkdir /data/a && echo one > /data/a/one && ls -A /data'), [0, 'a\n'])
    assert.deepEqual(await data(drive, 'cat /data/a/one; echo two > /data/two'), [0, 'one\n'])
    assert.deepEqual(await data(drive.snapshot(), 'cat /data/two; echo three > /data/two'), [2, 'two\n'], 'a snapshot is read alone')
    assert.deepEqual(await data(drive, 'cat /data/two; rm -r /data/a'), [0, 'two\n'])
    assert.deepEqual(await data(drive, 'ls -A /data'), [0, 'two\n'])
    const listed = await (await Drive.list({ ...account, namePrefix: drive.name, sortBy: 'name' })).toArray()
    assert.deepEqual(listed.map((one) => one.driveId), [drive.driveId])
    await drive.delete()
  })

  test('are not in the files of a sandbox that is kept', async () => {
    const drive = await Drive.getOrCreate({ ...account, name: unique('drive') })
    const sandbox = await Sandbox.create({ ...account, timeout: 600_000, mounts: { '/data': drive } })
    await sandbox.runCommand('sh', ['-c', 'echo kept > kept; echo data > /data/data'])
    const { snapshot } = await sandbox.stop()
    const copy = await Sandbox.create({ ...account, source: { type: 'snapshot', snapshotId: snapshot.id }, persistent: false })
    assert.equal(await (await copy.runCommand('sh', ['-c', 'cat kept; ls -A /data'])).stdout(), 'kept\n')
    await copy.delete()
    assert.equal(await (await sandbox.runCommand('cat', ['kept', '/data/data'])).stdout(), 'kept\ndata\n', 'it has them again when it resumes')
    await sandbox.delete({ deleteOrphanSnapshots: true })
    await drive.delete()
  })
})

describe('lists and errors', () => {
  test('lists by one tag and by name', async () => {
    const tag = unique('tag')
    const made = await Promise.all(['a', 'b'].map((one) => Sandbox.create({ ...account, name: `${tag}-${one}`, tags: { tag }, persistent: false })))
    const names = (list) => list.sandboxes.map((one) => one.name).sort()
    const all = [`${tag}-a`, `${tag}-b`]
    assert.deepEqual(names(await Sandbox.list({ ...account, tags: { tag } })), all)
    assert.deepEqual(names(await Sandbox.list({ ...account, namePrefix: tag, sortBy: 'name' })), all)
    const paged = await (await Sandbox.list({ ...account, tags: { tag }, limit: 1 })).toArray()
    assert.equal(paged.length, 2)
    await assert.rejects(Sandbox.list({ ...account, namePrefix: tag }), (error) => error.response.status === 400)
    await Promise.all(made.map((one) => one.delete()))
  })

  test('refuses a taken name with 400', async () => {
    const sandbox = await Sandbox.create({ ...account, persistent: false })
    await assert.rejects(
      Sandbox.create({ ...account, name: sandbox.name }),
      (error) => error.response.status === 400 && error.json.error.code === 'bad_request' && /GET/.test(error.message),
    )
    await sandbox.delete()
  })

  test('refuses what the plan does not have', async () => {
    for (const [wanted, code] of [
      [{ timeout: 25 * 3600_000 }, 'sandbox_timeout_invalid'],
      [{ resources: { vcpus: 64 } }, 'bad_request'],
      [{ ports: Array.from({ length: 16 }, (_, n) => 3000 + n) }, 'bad_request'],
      [{ tags: Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((key) => [key, key])) }, 'bad_request'],
      [{ image: 'docker.io/library/debian' }, 'bad_request'],
    ]) {
      await assert.rejects(Sandbox.create({ ...account, ...wanted }), (error) => error.response.status === 400 && error.json.error.code === code)
    }
  })

  test('refuses strangers', async () => {
    await assert.rejects(Sandbox.create({ ...account, token: 'wrong' }), (error) => error.response.status === 401)
    await assert.rejects(Sandbox.create({ ...account, teamId: 'team_other' }), (error) => error.response.status === 403)
    await assert.rejects(Sandbox.get({ ...account, name: 'nobody' }), (error) => error.response.status === 404)
  })
})
