import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** `@person` and `@word` in `target` and `body` are random numbers; each answer has to contain `expected`. */
export type PeerRequest = { method: string; target: string; body?: string; expected: string }

/** A peer that answers. `headers` go with each request. */
export type RunningPeer = { address: string; headers: Record<string, string>; stop(): Promise<void> }

/** Where a peer is installed, and the database it has for itself. */
export type Place = { folder: string; url: string; people: number }

export type Peer = {
  /** The word of `--only`, and the folder here that pins the version, unless that is `pinnedBy`. */
  name: string
  pinnedBy?: string
  packageName: string
  requests: { patch: PeerRequest; get: PeerRequest }
  start(place: Place): Promise<RunningPeer>
}

export const peerPath = `${dirname(process.execPath)}:${process.env.PATH}`

/** Installs the pinned packages into `folder`, and tells the peer's version. */
export async function installPeer({ name, pinnedBy = name, packageName }: Peer, folder: string): Promise<string> {
  await cp(fileURLToPath(new URL(pinnedBy, import.meta.url)), folder, { recursive: true })
  const words = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error']
  await runOwned('npm', words, folder, { ...process.env, PATH: peerPath })
  const installed = await readFile(join(folder, 'node_modules', packageName, 'package.json'), 'utf8')
  return (JSON.parse(installed) as { version: string }).version
}

/** Runs a program of the peer's to its end. Throws with what it said when it fails. */
export async function runOwned(command: string, words: string[], folder: string, environment: NodeJS.ProcessEnv) {
  const { child, said } = spawnOwned(command, words, folder, environment)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ${words[0]} ended with ${code}:\n${said()}`)
}

/** Runs a program of the peer's until it says where it listens. It ends with `stop`, or with this process. */
export async function startProgram(folder: string, words: string[], environment: NodeJS.ProcessEnv) {
  const all = { PATH: peerPath, NODE_ENV: 'production', ...environment }
  const { child, said, kill } = spawnOwned(process.execPath, words, folder, all)
  const address = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', () => {
        const found = /(?:ready|started) at (http:\/\/127\.0\.0\.1:\d+)/.exec(said())?.[1]
        if (found) resolve(found)
      })
    child.once('error', reject)
    const late = () => reject(new Error(`${words.join(' ')} did not listen in ${startSeconds} s:\n${said()}`))
    setTimeout(late, startSeconds * 1_000).unref()
    child.once('close', code => reject(new Error(`${words.join(' ')} ended with ${code}:\n${said()}`)))
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

const startSeconds = 120

const moments = ['SIGINT', 'SIGTERM', 'exit'] as const

/** In a process group of its own, which ends when this process does: npm and the peers start processes themselves. */
function spawnOwned(command: string, words: string[], cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn(command, words, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, 'SIGKILL')
  }
  for (const moment of moments) process.once(moment, kill)
  child.once('exit', () => {
    for (const moment of moments) process.off(moment, kill)
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', part => {
      text = `${text}${part}`.slice(-4_000)
    })
  return { child, kill, said: () => text }
}
