import { randomUUID } from 'node:crypto'
import http from 'node:http'

export const base = process.env.VERCEL_SIMULATOR
export const token = process.env.VERCEL_SIMULATOR_TOKEN
if (!base || !token) throw new Error('VERCEL_SIMULATOR and VERCEL_SIMULATOR_TOKEN say where the simulated cloud is: the real one is not for tests')

// The SDK has no base URL, but takes a fetch. Its dispatcher is of another undici than Node's own fetch.
function rewritten(url, init = {}) {
  const { dispatcher, ...rest } = init
  return fetch(String(url).replace('https://vercel.com', base), rest)
}

export const account = { token, teamId: 'team_simulated', projectId: 'prj_simulated', fetch: rewritten }

export const unique = (what) => `${what}-${randomUUID().slice(0, 8)}`

// visit asks a port by its public name, which nobody resolves.
export function visit(address, path = '/') {
  return new Promise((resolve, reject) => {
    const host = new URL(address).host
    http
      .get(new URL(path, base), { headers: { host } }, (response) => {
        let text = ''
        response.on('data', (piece) => (text += piece))
        response.on('end', () => resolve({ status: response.statusCode, text }))
      })
      .on('error', reject)
  })
}

// until asks again until the answer is good.
export async function until(ask) {
  const end = Date.now() + 60_000
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (Date.now() > end) throw new Error('not within a minute')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
