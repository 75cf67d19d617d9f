// What the areas share.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** Thrown by an area that the version does not have. */
export class Absent extends Error {}

export function absent() {
  throw new Absent()
}

/** Calls `check` until it returns something true, and returns that. */
export async function eventually(check, timeoutMs = 20_000) {
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
    await call
  } catch (error) {
    return error
  }
  assert.fail('the call should have failed')
}

/** The sandboxes with this metadata: an array of all in the first versions, a paginator in the later ones. */
export async function listed({ Sandbox }, metadata) {
  const found = await Sandbox.list({ query: { metadata } })
  if (Array.isArray(found)) return found
  const all = []
  while (found.hasNext) all.push(...(await found.nextItems()))
  return all
}
