// Servers inside a sandbox and signed URLs, seen from outside by host name.

import { test } from 'node:test'
import { WebSocket } from 'undici'
import { assert, eventually, folder, needs, ownSandbox, scheme, sharedSandbox, sleep } from '../support.js'

const shared = sharedSandbox()

const server = `
const http = require('node:http'), crypto = require('node:crypto')
const s = http.createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ url: request.url, method: request.method, headers: request.headers, body: Buffer.concat(chunks).toString('latin1') }))
  })
})
s.on('upgrade', (request, socket) => {
  const accept = crypto.createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
  socket.on('data', (data) => {
    if ((data[0] & 15) === 8) return socket.end()
    const size = data[1] & 127, mask = data.subarray(2, 6)
    const text = Buffer.from(data.subarray(6, 6 + size).map((byte, index) => byte ^ mask[index % 4]))
    socket.write(Buffer.concat([Buffer.from([data[0], size]), text]))
  })
})
s.listen(Number(process.argv[3]), process.argv[2])
`

async function serve(box, address, port) {
  await box.files.write('/tmp/server.js', server)
  await box.commands.run(`node /tmp/server.js ${address} ${port}`, { background: true, timeoutMs: 0 })
}

const urlOf = (box, port, path = '/') => `${scheme}://${box.getHost(port)}${path}`

const reachable = (box, port, headers) =>
  eventually(async () => {
    const answer = await fetch(urlOf(box, port), { headers })
    return answer.status === 200 ? answer : (await answer.arrayBuffer(), undefined)
  })

test('servers on all addresses and on loopback', async () => {
  for (const [address, port] of [['0.0.0.0', 8000], ['127.0.0.1', 8001]]) {
    await serve(shared.box, address, port)
    await reachable(shared.box, port)
    const answer = await fetch(urlOf(shared.box, port, '/a%20b?q=1&q=2'), { method: 'POST', body: 'body', headers: { 'x-custom': 'yes' } })
    const seen = await answer.json()
    assert.deepEqual([seen.url, seen.method, seen.body], ['/a%20b?q=1&q=2', 'POST', 'body'])
    assert.deepEqual([seen.headers.host, seen.headers['x-custom']], [shared.box.getHost(port), 'yes'])
  }
})

test('WebSocket', async () => {
  await serve(shared.box, '127.0.0.1', 8002)
  await reachable(shared.box, 8002)
  const socket = new WebSocket(`${scheme === 'http' ? 'ws' : 'wss'}://${shared.box.getHost(8002)}/ws`)
  const reply = await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('hello')
    socket.onmessage = (message) => resolve(message.data)
    socket.onerror = reject
  })
  assert.equal(reply, 'hello')
  socket.close()
})

test('closed port, and after kill', async (t) => {
  const box = await ownSandbox(t)
  await serve(box, '0.0.0.0', 8000)
  await reachable(box, 8000)
  const closed = await fetch(urlOf(box, 9999))
  assert.equal(closed.status, 502)
  assert.deepEqual(await closed.json(), {
    sandboxId: box.sandboxId, message: 'The sandbox is running but port is not open', port: 9999, code: 502,
  })
  await box.kill()
  const gone = await fetch(urlOf(box, 8000))
  assert.equal(gone.status, 502)
  assert.deepEqual(await gone.json(), { sandboxId: box.sandboxId, message: 'The sandbox was not found', code: 502 })
})

test('traffic token', async (t) => {
  const box = await ownSandbox(t, { network: { allowPublicTraffic: false } })
  await serve(box, '0.0.0.0', 8000)
  await reachable(box, 8000, { 'e2b-traffic-access-token': box.trafficAccessToken })
  for (const headers of [{}, { 'e2b-traffic-access-token': 'wrong' }]) {
    const answer = await fetch(urlOf(box, 8000), { headers })
    assert.equal(answer.status, 403)
    assert.equal((await answer.json()).code, 403)
  }
})

test('masked host', async (t) => {
  const box = await ownSandbox(t, { network: { maskRequestHost: 'localhost:${PORT}' } })
  await serve(box, '0.0.0.0', 8000)
  const seen = await (await reachable(box, 8000)).json()
  assert.equal(seen.headers.host, 'localhost:8000')
  assert.equal(seen.headers['x-forwarded-host'], box.getHost(8000))
})

test('signed URLs', async () => {
  const dir = await folder(shared.box)
  await shared.box.files.write(`${dir}/f`, 'signed content')
  const byHost = (url) => {
    const parsed = new URL(url)
    return `${scheme}://${shared.box.getHost(49983)}${parsed.pathname}${parsed.search}`
  }
  for (const address of [(url) => url, byHost]) {
    for (const user of [undefined, 'root']) {
      const url = await shared.box.downloadUrl(`${dir}/f`, { user, useSignatureExpiration: 60 })
      assert.equal(await (await fetch(address(url))).text(), 'signed content')
    }
    const form = new FormData()
    form.append('file', 'uploaded')
    const answer = await fetch(address(await shared.box.uploadUrl(`${dir}/up`)), { method: 'POST', body: form })
    assert.deepEqual(await answer.json(), [{ name: 'up', path: `${dir}/up`, type: 'file' }])
    assert.equal(await shared.box.files.read(`${dir}/up`), 'uploaded')
  }
  const short = await shared.box.downloadUrl(`${dir}/f`, { useSignatureExpiration: 1 })
  await sleep(2100)
  for (const url of [short, byHost(short)]) {
    const expired = await fetch(url)
    assert.equal(expired.status, 401)
    assert.deepEqual(await expired.json(), { code: 401, message: 'signature is already expired' })
  }
})

test('the way out', needs('ISTHMUS_TEST_INTERNET'), async (t) => {
  const url = process.env.ISTHMUS_TEST_INTERNET
  assert.match((await shared.box.commands.run(`curl -sS -m 10 ${url}`)).stdout, /internet/)
  const closed = await ownSandbox(t, { allowInternetAccess: false })
  await assert.rejects(closed.commands.run(`curl -sS -m 4 ${url}`))
})

test('npm install', needs('ISTHMUS_TEST_INDEX'), async () => {
  const dir = await folder(shared.box)
  const registry = `${process.env.ISTHMUS_TEST_INDEX}/npm/`
  await shared.box.commands.run(`npm install --no-audit --no-fund --registry ${registry} isthmus-sample`, { cwd: dir })
  const result = await shared.box.commands.run(`node -e 'console.log(require("isthmus-sample"))'`, { cwd: dir })
  assert.equal(result.stdout, 'hello from a package\n')
})
