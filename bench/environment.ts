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

/** A PostgreSQL as `npm start` has it, with a database for each service that is measured on it. */
export type Ground = {
  url: string
  folder: string
  postgresPid: number
  createDatabase(name: string): Promise<void>
  stop(): Promise<void>
}

export async function prepareGround(): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), 'kith-bench-'))
  try {
    return await groundIn(folder)
  } catch (error) {
    await rm(folder, { recursive: true })
    throw error
  }
}

async function groundIn(folder: string): Promise<Ground> {
  // PostgreSQL refuses to run as root: its own user has to get in.
  await chmod(folder, 0o711)
  const { url, dataDir, stop } = await startEmbedded({ dataDir: folder, purpose: 'command', log: () => {} })
  const postgresPid = Number.parseInt(await readFile(join(dataDir, 'data', 'postmaster.pid'), 'utf8'), 10)
  return {
    url,
    folder,
    postgresPid,
    createDatabase: async name => {
      await inDatabase(url, client => client.query(`create database ${name}`))
    },
    stop: async () => {
      await stop()
      await rm(folder, { recursive: true, maxRetries: 10 })
    },
  }
}

/** A service of some checkout in a process of its own, on a database of its own. */
export type Service = { address: string; url: string; pid: number; token: string; stop(): Promise<void> }

const scopes = 'people:read people:write records:read records:write schema:read schema:write'
const daySeconds = 86_400

/** Starts it with the log of production, written to a file. */
export async function startService(ground: Ground, checkout: string, name: string, workers: number): Promise<Service> {
  const url = urlOfDatabase(ground.url, name)
  const environment = { PATH: process.env.PATH, DATABASE_URL: url, PORT: '0' }
  const program = join(checkout, 'cli', 'main.ts')
  const words = workers === 1 ? ['serve'] : ['serve', '--workers', `${workers}`]
  // Into a file, as a journal would take it: a pipe to here would make us part of what is measured.
  const log = join(ground.folder, `${name}.log`)
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
    const address = await addressOf(child, log)
    const token = ['token', '--org', 'default', '--scope', scopes, '--ttl', `${daySeconds}`]
    const made = await runProgram(process.execPath, [program, ...token], environment)
    return { address, url, pid: child.pid!, token: made.trim(), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

async function addressOf(child: ChildProcess, log: string): Promise<string> {
  for (;;) {
    const said = await readFile(log, 'utf8')
    const address = /kith is ready at ([^\s"]+)/.exec(said)?.[1]
    if (address) return address
    if (hasEnded(child)) throw new Error(`the service ended with ${child.exitCode ?? child.signalCode}:\n${said}`)
    await setTimeout(50)
  }
}
