import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * A request. `@person` and `@word` in `target` and `body` become random numbers. Each response has to contain
 * `expected`.
 */
export type PeerRequest = { method: string; target: string; body?: string; expected: string }

/** A running peer. Each request has these headers. */
export type RunningPeer = { address: string; headers: Record<string, string>; stop(): Promise<void> }

/** The folder where a peer is installed, the URL of its own database, and the number of people in it. */
export type PeerSetup = { folder: string; url: string; people: number }

export type Peer = {
  /** The name for `--only`. It is also the folder that pins the version, unless `pinnedBy` names another. */
  name: string
  pinnedBy?: string
  packageName: string
  requests: { patch: PeerRequest; get: PeerRequest }
  start(setup: PeerSetup): Promise<RunningPeer>
}

/** The search path of peers, with this process's Node.js first. */
export const peerPath = `${dirname(process.execPath)}:${process.env.PATH}`

/** Installs the pinned packages into `folder`. Returns the version of the peer. */
export async function installPeer({ name, pinnedBy = name, packageName }: Peer, folder: string): Promise<string> {
  await cp(fileURLToPath(new URL(pinnedBy, import.meta.url)), folder, { recursive: true })
  const words = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error']
  await runPeerProgram('npm', words, folder, { ...process.env, PATH: peerPath })
  const installed = await readFile(join(folder, 'node_modules', packageName, 'package.json'), 'utf8')
  return (JSON.parse(installed) as { version: string }).version
}

/** Runs a program of a peer to its end. Throws with its output if it fails. */
export async function runPeerProgram(command: string, words: string[], folder: string, environment: NodeJS.ProcessEnv) {
  const { child, readOutput } = spawnGroup(command, words, folder, environment)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ${words[0]} exited with ${code}:\n${readOutput()}`)
}

/** Starts a program of a peer and waits until it logs its address. It ends with `stop`, or with this process. */
export async function startProgram(folder: string, words: string[], environment: NodeJS.ProcessEnv) {
  const fullEnvironment = { PATH: peerPath, NODE_ENV: 'production', ...environment }
  const { child, readOutput, kill } = spawnGroup(process.execPath, words, folder, fullEnvironment)
  const address = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', () => {
        const found = /(?:ready|started) at (http:\/\/127\.0\.0\.1:\d+)/.exec(readOutput())?.[1]
        if (found) resolve(found)
      })
    child.once('error', reject)
    const rejectLate = () =>
      reject(new Error(`${words.join(' ')} did not listen within ${maxStartSeconds} s:\n${readOutput()}`))
    setTimeout(rejectLate, maxStartSeconds * 1_000).unref()
    child.once('close', code => reject(new Error(`${words.join(' ')} exited with ${code}:\n${readOutput()}`)))
  })
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    kill()
    await once(child, 'exit')
  }
  try {
    return { address: await address, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const maxStartSeconds = 120

const exitEvents = ['SIGINT', 'SIGTERM', 'exit'] as const

/**
 * Spawns a program in its own process group. npm and the peers start processes too, and all of them end with this
 * process.
 */
function spawnGroup(command: string, words: string[], cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn(command, words, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, 'SIGKILL')
  }
  for (const moment of exitEvents) process.once(moment, kill)
  child.once('exit', () => {
    for (const moment of exitEvents) process.off(moment, kill)
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', part => {
      text = `${text}${part}`.slice(-4_000)
    })
  return { child, kill, readOutput: () => text }
}
