import { fileURLToPath } from 'node:url'
import { coolDown, parseWrk, type Run, runProgram } from '../measure.ts'
import type { PeerRequest, RunningPeer } from './peer.ts'

const requests = fileURLToPath(new URL('requests.lua', import.meta.url))
const connections = 64

/** Sends a PATCH and a GET. Throws unless the GET returns what the PATCH wrote. */
export async function verifyPeer(peer: RunningPeer, { patch, get }: Record<'patch' | 'get', PeerRequest>) {
  const words = ['F471147', 'L471147', 'c471147']
  await sendOnce(peer, patch, [])
  await sendOnce(peer, get, words)
}

async function sendOnce({ address, headers }: RunningPeer, request: PeerRequest, words: string[]) {
  const { method, target, body, expected } = request
  const fill = (text: string) => text.replaceAll('@person', '7').replaceAll('@word', '471147')
  const init = { method, headers, ...(body === undefined ? {} : { body: fill(body) }) }
  const response = await fetch(`${address}${fill(target)}`, init)
  const answer = await response.text()
  const missing = [expected, ...words].filter(word => !answer.includes(word))
  if (!response.ok || missing.length > 0)
    throw new Error(`${method} ${fill(target)} returned ${response.status} without ${missing.join(', ')}:\n${answer}`)
}

/** Sends requests with wrk. Throws if a response is unsuccessful. */
export async function loadPeer(peer: RunningPeer, request: PeerRequest, people: number, seconds: number): Promise<Run> {
  await coolDown()
  const environment = {
    PATH: process.env.PATH,
    METHOD: request.method,
    TARGET: request.target,
    BODY: request.body ?? '',
    EXPECTED: request.expected,
    PEOPLE: `${people}`,
    HEADERS: Object.entries(peer.headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
  }
  const words = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', requests, peer.address]
  return parseWrk(await runProgram('wrk', words, environment))
}
