import { fileURLToPath } from 'node:url'
import { breathe, parseWrk, type Run, runProgram } from '../measure.ts'
import type { PeerRequest, RunningPeer } from './peer.ts'

const requests = fileURLToPath(new URL('requests.lua', import.meta.url))
const connections = 64

/** Sends one PATCH and one GET, and throws unless the second tells what the first wrote. */
export async function verifyPeer(peer: RunningPeer, { patch, get }: Record<'patch' | 'get', PeerRequest>) {
  const words = ['F471147', 'L471147', 'c471147']
  await askOnce(peer, patch, [])
  await askOnce(peer, get, words)
}

async function askOnce({ address, headers }: RunningPeer, request: PeerRequest, words: string[]) {
  const { method, target, body, expected } = request
  const fill = (text: string) => text.replaceAll('@person', '7').replaceAll('@word', '471147')
  const init = { method, headers, ...(body === undefined ? {} : { body: fill(body) }) }
  const response = await fetch(`${address}${fill(target)}`, init)
  const answer = await response.text()
  const lacking = [expected, ...words].filter(word => !answer.includes(word))
  if (!response.ok || lacking.length > 0)
    throw new Error(`${method} ${fill(target)} answered ${response.status} without ${lacking.join(', ')}:\n${answer}`)
}

/** Sends such requests for so many seconds. Throws where an answer was no success. */
export async function loadPeer(peer: RunningPeer, request: PeerRequest, people: number, seconds: number): Promise<Run> {
  await breathe()
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
