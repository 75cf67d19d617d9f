// What a client sees of limits: the harness configures two sandboxes for a team, or for the machine.

import { test } from 'node:test'
import { RateLimitError, ServiceBusyError } from 'e2b'
import { Sandbox, assert, failure, needs, ownSandbox } from '../support.js'

const kind = { team: RateLimitError, machine: ServiceBusyError }[process.env.ISTHMUS_TEST_LIMIT]

test('one too many', needs('ISTHMUS_TEST_LIMIT'), async (t) => {
  const first = await ownSandbox(t)
  await ownSandbox(t)
  const error = await failure(() => Sandbox.create({ retries: 0 }))
  assert.ok(error instanceof kind, `${error}`)
  await first.kill()
  const third = await ownSandbox(t)
  assert.equal((await third.commands.run('echo room again')).stdout, 'room again\n')
})
