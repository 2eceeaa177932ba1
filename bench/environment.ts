import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startFlags } from '../scripts/start-flags.ts'
import { startEmbedded, urlOfDatabase } from '../src/db/embedded.ts'
import { inDatabase } from './database.ts'
import { runProgram } from './measure.ts'

/** An embedded PostgreSQL as `npm start` runs it. Each measured service has its own database on it. */
export type BenchPostgres = {
  url: string
  folder: string
  /** The process id of the postmaster. */
  pid: number
  createDatabase(name: string): Promise<void>
  stop(): Promise<void>
}

/** Starts the PostgreSQL in a temporary folder. `stop` removes the folder. */
export async function startPostgres(): Promise<BenchPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'kith-bench-'))
  try {
    return await startPostgresIn(folder)
  } catch (error) {
    await rm(folder, { recursive: true })
    throw error
  }
}

async function startPostgresIn(folder: string): Promise<BenchPostgres> {
  // PostgreSQL refuses to run as root. Its own user has to enter the folder.
  await chmod(folder, 0o711)
  const { url, dataDir, stop } = await startEmbedded({ dataDir: folder, purpose: 'command', log: () => {} })
  const pid = Number.parseInt(await readFile(join(dataDir, 'data', 'postmaster.pid'), 'utf8'), 10)
  return {
    url,
    folder,
    pid,
    createDatabase: async name => {
      await inDatabase(url, client => client.query(`create database ${name}`))
    },
    stop: async () => {
      await stop()
      await rm(folder, { recursive: true, maxRetries: 10 })
    },
  }
}

/** A running service of a checkout, on its own database. */
export type Service = { address: string; url: string; pid: number; token: string; stop(): Promise<void> }

// A revision refuses a token with a later scope, so each set has fewer. The last has those of the first release.
const firstScopes = 'people:read people:write records:read records:write schema:read schema:write'
const laterScopes = `${firstScopes} people:erase consents:read changes:read`
const lastScopes = `${laterScopes} access:write`
const scopeSets = [`${lastScopes} exports:read`, lastScopes, laterScopes, firstScopes]
const daySeconds = 86_400

/**
 * Starts a service with the log of production. `settings` are variables of its environment. Throws with its log if it exits before
 * it is ready.
 */
export async function startService(
  postgres: BenchPostgres,
  checkout: string,
  name: string,
  workers = 1,
  settings: Record<string, string> = {},
): Promise<Service> {
  const url = urlOfDatabase(postgres.url, name)
  // A revision refuses the settings of later ones.
  const folder = join(checkout, 'src')
  const known = await readFile(join(folder, 'process', 'config.ts'), 'utf8').catch(() =>
    readFile(join(folder, 'config.ts'), 'utf8'),
  )
  const ownSettings = Object.fromEntries(Object.entries(settings).filter(([name]) => known.includes(name)))
  const environment = { PATH: process.env.PATH, ...ownSettings, DATABASE_URL: url, PORT: '0' }
  const program = join(checkout, 'cli', 'main.ts')
  const words = workers === 1 ? ['serve'] : ['serve', '--workers', `${workers}`]
  // The log goes to a file. A pipe would make this process read it during the measurement.
  const log = join(postgres.folder, `${name}.log`)
  const output = await open(log, 'w')
  const child = spawn(process.execPath, [...startFlags, program, ...words], {
    env: environment,
    cwd: checkout,
    stdio: ['ignore', output.fd, output.fd],
  })
  await output.close()
  const stop = async () => {
    child.kill('SIGTERM')
    if (!hasEnded(child)) await once(child, 'exit')
  }
  try {
    const address = await waitForAddress(child, log)
    const createToken = (scopes: string) => {
      const words = ['token', '--org', 'default', '--scope', scopes, '--ttl', `${daySeconds}`]
      return runProgram(process.execPath, [program, ...words], environment)
    }
    const [first, ...fewer] = scopeSets
    const token = await fewer.reduce(
      (creating, scopes) => creating.catch(() => createToken(scopes)),
      createToken(first!),
    )
    return { address, url, pid: child.pid!, token: token.trim(), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

async function waitForAddress(child: ChildProcess, log: string): Promise<string> {
  for (;;) {
    const output = await readFile(log, 'utf8')
    const address = /kith is ready at ([^\s"]+)/.exec(output)?.[1]
    if (address) return address
    if (hasEnded(child)) throw new Error(`The service exited with ${child.exitCode ?? child.signalCode}:\n${output}`)
    await setTimeout(50)
  }
}
