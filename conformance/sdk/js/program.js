// One of two programs that run at once: makes N sandboxes, uses them, and kills them when all have lived.
// Usage: program.js N

import assert from 'node:assert/strict'
import { Sandbox } from 'e2b'

// How many calls are under way at a time, as in a program of that kind.
const atOnce = 10
const count = Number(process.argv[2])

// each does the work for all items, atOnce at a time.
async function each(items, work) {
  const results = []
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}

async function use(box) {
  await box.files.write('name', box.sandboxId)
  assert.equal((await box.commands.run('cat name; echo $E2B_SANDBOX_ID')).stdout, `${box.sandboxId}${box.sandboxId}\n`)
  const sleeper = await box.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  sleeper.wait().catch(() => {}) // it ends with the sandbox
  assert.ok((await box.commands.list()).some((item) => item.pid === sleeper.pid))
  assert.equal(await box.files.read('name'), box.sandboxId)
}

const metadata = { program: 'javascript' }
const boxes = await each(Array.from({ length: count }), () => Sandbox.create({ timeoutMs: 300_000, metadata }))
await each(boxes, use)
const alive = await Sandbox.list({ query: { metadata }, limit: 100 }).nextItems()
assert.deepEqual(new Set(alive.map((item) => item.sandboxId)), new Set(boxes.map((box) => box.sandboxId)))
assert.ok((await each(boxes, (box) => box.kill())).every(Boolean))
console.log(`javascript: ${count} sandboxes made, used and killed`)
process.exit(0)
