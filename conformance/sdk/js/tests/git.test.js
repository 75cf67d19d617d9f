// The SDK's git module, against a bare repository inside the sandbox.

import { test } from 'node:test'
import { assert, folder, sharedSandbox } from '../support.js'

const shared = sharedSandbox()

test('init, commit, push, clone and pull', async () => {
  const dir = await folder(shared.box)
  const git = shared.box.git
  const author = { authorName: 'Test Person', authorEmail: 'test@example.com' }
  await git.init(`${dir}/origin.git`, { bare: true, initialBranch: 'main' })
  await git.init(`${dir}/work`, { initialBranch: 'main' })
  await git.remoteAdd(`${dir}/work`, 'origin', `file://${dir}/origin.git`)
  await shared.box.files.write(`${dir}/work/README.md`, 'hello')
  assert.equal((await git.status(`${dir}/work`)).hasUntracked, true)
  await git.add(`${dir}/work`)
  await git.commit(`${dir}/work`, 'first', author)
  await git.push(`${dir}/work`, { remote: 'origin', branch: 'main' })
  await git.clone(`file://${dir}/origin.git`, { path: `${dir}/clone`, depth: 1 })
  assert.equal(await shared.box.files.read(`${dir}/clone/README.md`), 'hello')
  await shared.box.files.write(`${dir}/clone/more`, 'more')
  await git.add(`${dir}/clone`)
  await git.commit(`${dir}/clone`, 'second', author)
  await git.push(`${dir}/clone`, { remote: 'origin', branch: 'main' })
  await git.pull(`${dir}/work`, { remote: 'origin', branch: 'main' })
  assert.equal(await shared.box.files.read(`${dir}/work/more`), 'more')
})

test('branches and configuration', async () => {
  const dir = `${await folder(shared.box)}/repo`
  const git = shared.box.git
  await git.init(dir, { initialBranch: 'main' })
  await git.configureUser('Some Name', 'some@example.com')
  await git.commit(dir, 'empty', { allowEmpty: true })
  await git.createBranch(dir, 'feature')
  const found = await git.branches(dir)
  assert.deepEqual([found.branches.sort(), found.currentBranch], [['feature', 'main'], 'feature'])
  assert.equal(await git.getConfig('user.name'), 'Some Name')
  assert.equal(await git.getConfig('no.such'), undefined)
})
