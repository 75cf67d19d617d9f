import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from '@vercel/sandbox'
import { Vercel } from '@vercel/sdk'
import { account, base, token, unique } from '../support.js'

const vercel = new Vercel({ serverURL: base, bearerToken: token })
const teamId = account.teamId

test('the SDK that is made of the OpenAPI document understands every answer', async () => {
  const name = unique('openapi')
  const made = await Sandbox.create({ ...account, name, runtime: 'node24', timeout: 600_000 })
  const sessionId = made.currentSession().sessionId
  const command = await made.runCommand({ cmd: 'sleep', args: ['600'], detached: true })

  const one = await vercel.sandboxes.getNamedSandbox({ name, projectId: account.projectId, teamId })
  assert.equal(one.sandbox.name, name)
  assert.equal(one.sandbox.runtime, 'node24')
  const list = await vercel.sandboxes.listNamedSandboxes({ project: account.projectId, teamId, namePrefix: name, sortBy: 'name' })
  assert.deepEqual(list.sandboxes.map((each) => each.name), [name])
  assert.equal((await vercel.sandboxes.getSession({ sessionId, teamId })).session.id, sessionId)
  const sessions = await vercel.sandboxes.listSessions({ project: account.projectId, teamId, name })
  assert.equal(sessions.sessions.length, 1)

  const commands = await vercel.sandboxes.listSessionCommands({ sessionId, teamId })
  assert.equal(commands.commands[0].id, command.cmdId)
  await vercel.sandboxes.killSessionCommand({ sessionId, cmdId: command.cmdId, teamId, requestBody: { signal: 9 } })
  const killed = await vercel.sandboxes.getSessionCommand({ sessionId, cmdId: command.cmdId, teamId, wait: 'true' })
  assert.equal(killed.command.exitCode, 137)

  await vercel.sandboxes.createSessionDirectory({ sessionId, teamId, requestBody: { path: 'a/b', recursive: true } })
  await vercel.sandboxes.extendSessionTimeout({ sessionId, teamId, requestBody: { duration: 60_000 } })
  await vercel.sandboxes.updateSessionNetworkPolicy({ sessionId, teamId, requestBody: { mode: 'deny-all' } })
  const stopped = await vercel.sandboxes.stopSession({ sessionId, teamId })
  assert.equal(stopped.session.status, 'stopped')
  const snapshots = await vercel.sandboxes.listSessionSnapshots({ project: account.projectId, teamId, name })
  assert.equal(snapshots.snapshots.length, 1)
  const snapshotId = snapshots.snapshots[0].id
  assert.equal((await vercel.sandboxes.getSessionSnapshot({ snapshotId, teamId })).snapshot.id, snapshotId)
  await vercel.sandboxes.deleteSessionSnapshot({ snapshotId, teamId })
  await vercel.sandboxes.deleteSandbox({ name, projectId: account.projectId, teamId })
})

test('drives', async () => {
  const name = unique('drive')
  const made = await vercel.sandboxes.getOrCreateDrive({ name, teamId, requestBody: { projectId: account.projectId } })
  assert.equal(made.drive.name, name)
  const sandbox = await Sandbox.create({ ...account, persistent: false, mounts: { '/data': { drive: name, mode: 'read-write' } } })
  await assert.rejects(vercel.sandboxes.deleteDrive({ name, projectId: account.projectId, teamId }), (error) => error.statusCode === 409)
  await sandbox.delete()
  await vercel.sandboxes.deleteDrive({ name, projectId: account.projectId, teamId })
  const list = await vercel.sandboxes.listDrives({ projectId: account.projectId, teamId, namePrefix: name })
  assert.deepEqual(list.drives, [])
})
