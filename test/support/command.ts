import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

export type Ended = { code: number | null; stdout: string; stderr: string }

/** A command that runs, and what it will have said. */
export type Running = { child: ChildProcessWithoutNullStreams; ended: Promise<Ended> }

/** Starts `kith` in a process of its own, with this environment and nothing else. */
export function startCommand(words: string[], environment: Record<string, string>, cwd: string): Running {
  const child = spawn(process.execPath, [program, ...words], { cwd, env: environment })
  // It may end before it has read what it is given.
  child.stdin.on('error', () => {})
  const ended = Promise.all([text(child.stdout).catch(() => 'closed'), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr]) => ({ code: child.exitCode, stdout, stderr }),
  )
  return { child, ended }
}

/** A door in front of a service that closes once, when so many bytes have gone through in either direction. */
export async function breakingProxy(
  address: string,
  after: { up?: number; down?: number },
): Promise<{ address: string; server: Server }> {
  const { hostname, port } = new URL(address)
  let left = { up: after.up ?? Number.POSITIVE_INFINITY, down: after.down ?? Number.POSITIVE_INFINITY }
  const server = createServer(inside => {
    const outside = connect({ host: hostname, port: Number(port) })
    const cut = () => [inside, outside].map(socket => socket.destroy())
    const relay = (from: Socket, to: Socket, way: 'up' | 'down') => {
      from.on('error', cut).on('close', () => to.end())
      from.on('data', (piece: Buffer) => {
        left[way] -= piece.length
        if (left[way] > 0) return void to.write(piece)
        left = { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY }
        cut()
      })
    }
    relay(inside, outside, 'up')
    relay(outside, inside, 'down')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { address: `http://127.0.0.1:${(server.address() as { port: number }).port}`, server }
}
