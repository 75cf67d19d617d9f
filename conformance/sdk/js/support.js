// What every test file shares: the surroundings from the environment, one sandbox per file, and small helpers.
//
// The SDK itself reads E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY (or E2B_DOMAIN and E2B_API_KEY).
// The ISTHMUS_TEST_* variables describe what a harness has set up around the server.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Sandbox } from 'e2b'

export { assert, sleep, Sandbox }

export const apiUrl = process.env.E2B_API_URL || `https://api.${process.env.E2B_DOMAIN}`
// Some clouds sell memory with processors only.
export const memoryMB = Number(process.env.ISTHMUS_TEST_MEMORY_MB || 1024)
// Fields of a create that the pool serves and others refuse.
export const served = (process.env.ISTHMUS_TEST_SERVED || '').split(',')
// In URL mode sandboxes are reached over the same plain http as the API, in domain mode over https.
export const scheme = apiUrl.startsWith('http:') ? 'http' : 'https'

/** Options for a case that needs variables of the harness: skipped, with the name, when one is not set. */
export function needs(...names) {
  const missing = names.find((name) => !process.env[name])
  return missing ? { skip: `${missing} is not set: this case needs a harness that provides it` } : {}
}

/** A name that no other case uses. */
export function token() {
  return randomBytes(6).toString('hex')
}

/** One sandbox for all cases of a file, in `.box`; cases keep to their own folders and ports. */
export function sharedSandbox(options = {}) {
  const shared = { box: undefined }
  before(async () => {
    shared.box = await Sandbox.create({ timeoutMs: 300_000, ...options })
  })
  after(async () => {
    await shared.box?.kill()
  })
  return shared
}

/** A sandbox for one case, killed when the case has ended. */
export async function ownSandbox(t, options = {}) {
  const box = await Sandbox.create({ timeoutMs: 120_000, ...options })
  t.after(() => box.kill())
  return box
}

/** A fresh folder in a sandbox, as an absolute path. */
export async function folder(box) {
  const path = `/home/user/${token()}`
  await box.files.makeDir(path)
  return path
}

/** Calls `check` until it returns something true, and returns that. */
export async function eventually(check, timeoutMs = 40_000) {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await check()
    if (value) return value
    assert.ok(Date.now() < deadline, `not within ${timeoutMs} ms, last answer: ${value}`)
    await sleep(50)
  }
}

/** The error of a call that must fail. */
export async function failure(call) {
  try {
    await call()
  } catch (error) {
    return error
  }
  assert.fail('the call should have failed')
}

/** A stream of the given chunks. */
export function streamOf(chunks) {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
}

/** All bytes of a stream. */
export async function bytesOf(stream) {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
