// Files of every kind, folders, links, metadata, and watching.

import { test } from 'node:test'
import {
  FileNotFoundError,
  FileType,
  FilesystemEventType,
  InvalidArgumentError,
  NotFoundError,
  SandboxError,
  TimeoutError,
} from 'e2b'
import { assert, bytesOf, eventually, failure, folder, sharedSandbox, streamOf, token } from '../support.js'

const shared = sharedSandbox()
const bytes = (text) => new TextEncoder().encode(text)

test('write tells what it wrote', async () => {
  const name = `${token()}.txt`
  const info = await shared.box.files.write(name, 'text')
  assert.deepEqual([info.name, info.type, info.path], [name, FileType.FILE, `/home/user/${name}`])
})

test('every kind of data, by both uploads', async () => {
  const dir = await folder(shared.box)
  const text = 'ä🙂\r\n' + 'x'.repeat(1000)
  for (const useOctetStream of [false, true]) {
    for (const make of [() => text, () => bytes(text).buffer, () => new Blob([text]), () => streamOf([bytes(text)])]) {
      await shared.box.files.write(`${dir}/f`, make(), { useOctetStream })
      assert.equal(await shared.box.files.read(`${dir}/f`), text)
    }
  }
})

test('every kind of reading, also of an empty file', async () => {
  const dir = await folder(shared.box)
  for (const text of ['content', '']) {
    await shared.box.files.write(`${dir}/f`, text)
    const read = (format, gzip) => shared.box.files.read(`${dir}/f`, { format, gzip })
    for (const gzip of [undefined, true]) {
      assert.equal(await read('text', gzip), text)
      assert.deepEqual(Buffer.from(await read('bytes', gzip)), Buffer.from(text))
      assert.equal(await (await read('blob', gzip)).text(), text)
      assert.equal((await bytesOf(await read('stream', gzip))).toString(), text)
    }
  }
})

test('streams and gzip of a large file', async () => {
  const dir = await folder(shared.box)
  const chunks = Array.from({ length: 10 }, (_, n) => new Uint8Array(30_000).fill(n))
  await shared.box.files.write(`${dir}/f`, streamOf(chunks))
  assert.deepEqual(await bytesOf(await shared.box.files.read(`${dir}/f`, { format: 'stream' })), Buffer.concat(chunks))
  await shared.box.files.write(`${dir}/g`, streamOf(chunks), { gzip: true })
  assert.equal((await shared.box.commands.run(`cmp ${dir}/f ${dir}/g; stat -c %s ${dir}/g`)).stdout, '300000\n')
})

test('a download that is dropped', async () => {
  const dir = await folder(shared.box)
  await shared.box.commands.run(`head -c 20000000 /dev/zero > ${dir}/zeros`)
  const reader = (await shared.box.files.read(`${dir}/zeros`, { format: 'stream' })).getReader()
  assert.ok((await reader.read()).value.length > 0)
  await reader.cancel()
  assert.equal(await shared.box.files.exists(`${dir}/zeros`), true)
})

test('many files in one call', async () => {
  const dir = await folder(shared.box)
  const files = Array.from({ length: 10 }, (_, n) => ({ path: `${dir}/${n}/deep/file-${n}.txt`, data: `content ${n}` }))
  const infos = await shared.box.files.write(files)
  assert.deepEqual(infos.map((info) => info.path), files.map((file) => file.path))
  for (const file of files) assert.equal(await shared.box.files.read(file.path), file.data)
  assert.deepEqual(await shared.box.files.write([]), [])
})

test('info of files, folders and links', async () => {
  const dir = await folder(shared.box)
  await shared.box.files.write(`${dir}/f`, 'four')
  await shared.box.commands.run(`cd ${dir} && ln -s f link && mkdir d`)
  const file = await shared.box.files.getInfo(`${dir}/f`)
  assert.deepEqual([file.size, file.mode, file.permissions, file.owner, file.group], [4, 0o644, '-rw-r--r--', 'user', 'user'])
  assert.deepEqual([file.type, file.symlinkTarget, file.metadata], [FileType.FILE, undefined, undefined])
  assert.ok(Math.abs(Date.now() - file.modifiedTime) < 60_000)
  const d = await shared.box.files.getInfo(`${dir}/d`)
  assert.deepEqual([d.type, d.mode, d.permissions], [FileType.DIR, 0o755, 'drwxr-xr-x'])
  assert.equal((await shared.box.files.getInfo(`${dir}/link`)).symlinkTarget, `${dir}/f`)
})

test('missing things', async () => {
  const dir = await folder(shared.box)
  for (const call of [
    () => shared.box.files.read(`${dir}/x`),
    () => shared.box.files.getInfo(`${dir}/x`),
    () => shared.box.files.list(`${dir}/x`),
    () => shared.box.files.rename(`${dir}/x`, `${dir}/y`),
    () => shared.box.files.watchDir(`${dir}/x`, () => {}),
  ]) {
    const error = await failure(call)
    assert.ok(error instanceof FileNotFoundError && error instanceof NotFoundError, String(error))
  }
  assert.equal(await shared.box.files.exists(`${dir}/x`), false)
  await shared.box.files.remove(`${dir}/x`)
})

test('list by depth', async () => {
  const dir = await folder(shared.box)
  await shared.box.commands.run(`cd ${dir} && mkdir -p a/aa b && touch f a/af a/aa/deep`)
  const names = async (depth) => (await shared.box.files.list(dir, { depth })).map((entry) => entry.name)
  assert.deepEqual(await names(undefined), ['a', 'b', 'f'])
  assert.deepEqual(await names(1), ['a', 'b', 'f'])
  assert.deepEqual(await names(2), ['a', 'aa', 'af', 'b', 'f'])
  assert.deepEqual(await names(3), ['a', 'aa', 'deep', 'af', 'b', 'f'])
  assert.ok((await failure(() => names(0))) instanceof InvalidArgumentError)
  assert.ok((await failure(() => shared.box.files.list(`${dir}/f`))) instanceof InvalidArgumentError)
})

test('folders, rename and remove', async () => {
  const dir = await folder(shared.box)
  assert.equal(await shared.box.files.makeDir(`${dir}/a/b`), true)
  assert.equal(await shared.box.files.makeDir(`${dir}/a/b`), false)
  await shared.box.files.write(`${dir}/old`, 'x')
  const info = await shared.box.files.rename(`${dir}/old`, `${dir}/new/place`)
  assert.deepEqual([info.name, info.path], ['place', `${dir}/new/place`])
  await shared.box.files.remove(`${dir}/new`)
  assert.equal(await shared.box.files.exists(`${dir}/new`), false)
})

test('metadata', async () => {
  const dir = await folder(shared.box)
  const metadata = { author: 'someone', purpose: 'a test: with = and ;' }
  for (const useOctetStream of [false, true]) {
    const written = await shared.box.files.write(`${dir}/f`, 'x', { metadata, useOctetStream })
    assert.deepEqual(written.metadata, metadata)
    assert.deepEqual((await shared.box.files.getInfo(`${dir}/f`)).metadata, metadata)
    assert.deepEqual((await shared.box.files.list(dir))[0].metadata, metadata)
    await shared.box.files.write(`${dir}/f`, 'y')
    assert.equal((await shared.box.files.getInfo(`${dir}/f`)).metadata, undefined)
  }
  assert.ok((await failure(() => shared.box.files.write(`${dir}/f`, 'x', { metadata: { 'a b': 'c' } }))) instanceof InvalidArgumentError)
})

test('awkward names', async () => {
  const dir = await folder(shared.box)
  const names = ['with space', `quote'"`, 'ümläut-日本', 'percent%20', 'plus+and&amp=?#', '.hidden']
  for (const name of names) {
    await shared.box.files.write(`${dir}/${name}`, name)
    assert.equal(await shared.box.files.read(`${dir}/${name}`), name)
  }
  assert.deepEqual((await shared.box.files.list(dir)).map((entry) => entry.name).sort(), names.sort())
})

test('watch by stream', async () => {
  const dir = await folder(shared.box)
  const events = []
  const sees = (name, type) => eventually(() => events.find((event) => event.name === name && event.type === type))
  const watch = await shared.box.files.watchDir(dir, (event) => events.push(event), { recursive: true, includeEntry: true })
  await shared.box.files.write(`${dir}/f`, 'four')
  const event = await sees('f', FilesystemEventType.WRITE)
  assert.deepEqual([event.entry.name, event.entry.path, event.entry.type], ['f', `${dir}/f`, FileType.FILE])
  assert.deepEqual(events.map((event) => event.type), [FilesystemEventType.CREATE, FilesystemEventType.CHMOD, FilesystemEventType.WRITE])
  await shared.box.files.makeDir(`${dir}/new/deep`)
  await sees('new/deep', FilesystemEventType.CREATE)
  await shared.box.files.write(`${dir}/new/deep/file`, 'x')
  await sees('new/deep/file', FilesystemEventType.WRITE)
  await shared.box.files.rename(`${dir}/f`, `${dir}/g`)
  await sees('f', FilesystemEventType.RENAME)
  await shared.box.files.remove(`${dir}/g`)
  await sees('g', FilesystemEventType.REMOVE)
  await watch.stop()
})

test('watch of a file, and the end of a watch', async () => {
  const dir = await folder(shared.box)
  await shared.box.files.write(`${dir}/f`, '')
  assert.ok((await failure(() => shared.box.files.watchDir(`${dir}/f`, () => {}))) instanceof SandboxError)
  const ended = []
  await shared.box.files.watchDir(dir, () => {}, { timeoutMs: 4000, onExit: (error) => ended.push(error) })
  await eventually(() => ended.length)
  assert.ok(ended[0] instanceof TimeoutError, String(ended[0]))
})
