// Runs every area with the client that is installed in a folder, and prints one JSON line for each:
// {"area": "files", "result": "passed" | "absent" | "failed", "detail": "..."}.
// Usage: node program.mjs FOLDER [AREA...]. The client reads E2B_DOMAIN and E2B_API_KEY by itself.

import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { areas } from './areas.mjs'
import { Absent } from './support.mjs'

const [folder, ...chosen] = process.argv.slice(2)
const e2b = createRequire(join(folder, 'package.json'))('e2b')
const { Sandbox } = e2b
const areaLimit = 90_000

async function outcome(run) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done within ${areaLimit} ms`)), areaLimit).unref()
  })
  try {
    await Promise.race([run(), late])
    return { result: 'passed' }
  } catch (error) {
    if (error instanceof Absent) return { result: 'absent' }
    return { result: 'failed', detail: error.stack ?? String(error) }
  }
}

const marker = randomBytes(6).toString('hex')
const box = await Sandbox.create('base', {
  timeoutMs: 300_000, metadata: { marker, 'a b': 'c&d=é' }, envs: { MARKER: marker },
})
for (const [area, run] of Object.entries(areas)) {
  if (chosen.length > 0 && !chosen.includes(area)) continue
  const found = await outcome(() => run({ e2b, Sandbox, box, marker }))
  console.log(JSON.stringify({ area, ...found }))
}
// Clients keep connections open, and an area that failed may have left a command running.
await box.kill().catch(() => {})
process.exit(0)
