// The time from a create to the end of the first command, seen by the SDK. Usage: bench.js SEQUENTIAL PAUSE_MS BURST
// Prints {"sequential": [ms, …], "burst": [ms, …], "failures": N}. The pause lets a server make boxes ahead.

import { setTimeout as sleep } from 'node:timers/promises'
import { Sandbox } from 'e2b'

const [sequential, pause, burst] = process.argv.slice(2).map(Number)
let failures = 0

async function one() {
  const began = performance.now()
  const box = await Sandbox.create({ timeoutMs: 300_000 })
  try {
    const ended = await box.commands.run('true')
    if (ended.exitCode !== 0) throw new Error(`exit code ${ended.exitCode}`)
    return performance.now() - began
  } finally {
    await box.kill()
  }
}

async function counted() {
  try {
    return await one()
  } catch (error) {
    console.error(error)
    failures++
  }
}

const times = { sequential: [], burst: [] }
await counted() // opens connections and compiles the SDK
for (let i = 0; i < sequential; i++) {
  await sleep(pause)
  times.sequential.push(await counted())
}
times.burst = await Promise.all(Array.from({ length: burst }, counted))
const good = (list) => list.filter((time) => time !== undefined)
console.log(JSON.stringify({ sequential: good(times.sequential), burst: good(times.burst), failures }))
process.exit(0)
