import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Peer, type PeerSetup, peerPath, type RunningPeer, runPeerProgram, startProgram } from '../peer.ts'
import { createPeople } from '../people.ts'

const target = '/items/people/p@person'

export const directus: Peer = {
  name: 'directus',
  packageName: 'directus',
  requests: {
    patch: {
      method: 'PATCH',
      target,
      body: '{"first_name":"F@word","last_name":"L@word","language":"en","attributes":{"city":"c@word","score":@word}}',
      expected: '"external_id":"p',
    },
    get: { method: 'GET', target, expected: '"external_id":"p' },
  },
  start: async setup => {
    await createPeople(setup.url, setup.people)
    return startDirectus(setup)
  },
}

/** Starts Directus on a database. Its headers sign in as the administrator. */
export async function startDirectus({ folder, url }: Pick<PeerSetup, 'folder' | 'url'>): Promise<RunningPeer> {
  const token = randomBytes(16).toString('hex')
  const environment = {
    DB_CLIENT: 'pg',
    DB_CONNECTION_STRING: url,
    SECRET: randomBytes(32).toString('hex'),
    ADMIN_EMAIL: 'admin@example.org',
    ADMIN_PASSWORD: randomBytes(16).toString('hex'),
    ADMIN_TOKEN: token,
    HOST: '127.0.0.1',
    PORT: `${await findFreePort()}`,
    HOME: folder,
    LOG_STYLE: 'raw',
    TELEMETRY: 'false',
  }
  const program = join(folder, 'node_modules', 'directus', 'cli.js')
  const whole = { PATH: peerPath, NODE_ENV: 'production', ...environment }
  await runPeerProgram(process.execPath, [program, 'bootstrap'], folder, whole)
  const running = await startProgram(folder, [program, 'start'], environment)
  return { ...running, headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` } }
}

/** Finds a free port, for a program that does not accept port 0. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
