import { spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { cleanEnvironment, commandLine } from '../../src/db/embedded/processes.ts'
import { acceptsConnections, childrenOf, signal } from '../faults/own-postgres.ts'

/** A server of the cluster. It runs on this machine, so that a test can kill it and start it again. */
export type ClusterNode = {
  port: number
  /** The database of KITH_CLUSTER_URL on this server. */
  url: string
  isCoordinator: boolean
  /** Sends SIGKILL to all processes of the server. Resolves when they have ended. */
  kill(): Promise<void>
  /** Starts the server as it was started first. Resolves when it accepts connections. */
  start(): Promise<void>
}

const pollMs = 20

/** The folders of KITH_CLUSTER_NODES. Empty if it is not set. */
export const nodeFolders = (process.env.KITH_CLUSTER_NODES ?? '').split(',').filter(Boolean)

/** The servers whose data folders KITH_CLUSTER_NODES names. The coordinator comes first. */
export async function readNodes(): Promise<ClusterNode[]> {
  const nodes = await Promise.all(nodeFolders.map(readNode))
  const coordinators = nodes.filter(({ isCoordinator }) => isCoordinator)
  if (coordinators.length !== 1 || nodes.length < 3)
    throw new Error('KITH_CLUSTER_NODES needs the data folders of the coordinator and of at least two workers.')
  return [...coordinators, ...nodes.filter(({ isCoordinator }) => !isCoordinator)]
}

async function readNode(folder: string): Promise<ClusterNode> {
  const clusterUrl = process.env.KITH_CLUSTER_URL!
  const { pid: firstPid, port } = await readLock(folder)
  const [program, ...words] = await readCommand(folder)
  const { uid, gid } = await stat(folder)
  const url = new URL(clusterUrl)
  const isCoordinator = Number(url.port || 5432) === port
  url.port = String(port)
  let pid = firstPid

  async function start(): Promise<void> {
    // The processes of a killed server hold its shared memory for a moment. Until then a new server exits at once.
    for (;;) {
      const options = { uid, gid, cwd: '/', env: cleanEnvironment, stdio: 'ignore', detached: true } as const
      const child = spawn(program!, words, options)
      child.unref()
      pid = child.pid!
      while (child.exitCode === null && child.signalCode === null) {
        if (await acceptsConnections(url.href)) return
        await setTimeout(pollMs)
      }
      await setTimeout(pollMs)
    }
  }
  async function kill(): Promise<void> {
    const pids = [pid, ...(await childrenOf(pid))]
    for (const each of pids) signal(each, 'SIGKILL')
    for (const each of pids) while ((await commandLine(each)) !== '') await setTimeout(pollMs)
  }
  return { port, url: url.href, isCoordinator, kill, start }
}

/** The process and the port of a running server. The lines of the file are pid, folder, start time and port. */
async function readLock(folder: string): Promise<{ pid: number; port: number }> {
  const lines = (await readFile(join(folder, 'postmaster.pid'), 'utf8')).split('\n')
  return { pid: Number(lines[0]), port: Number(lines[3]) }
}

/** The command that the server was started with: the program, and its arguments in quotation marks. */
async function readCommand(folder: string): Promise<string[]> {
  const text = (await readFile(join(folder, 'postmaster.opts'), 'utf8')).trim()
  const [program = ''] = text.split(' "', 1)
  return [program, ...[...text.slice(program.length).matchAll(/"([^"]*)"/g)].map(match => match[1]!)]
}
