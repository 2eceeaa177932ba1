import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { quote } from '../../src/welcome.ts'

const program = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

/** The result of a command. `code`: the exit code, or null if a signal ended it. */
export type CommandResult = { code: number | null; stdout: string; stderr: string }

/** A running command, and its result. */
export type RunningCommand = { child: ChildProcessWithoutNullStreams; ended: Promise<CommandResult> }

/**
 * The variable with which a process uses the compiled code of the others of this run. A start of `kith` then takes 0.55 s
 * of processor time instead of 1.0 s.
 */
export const compileCache = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }

/** Starts `kith` as a process with exactly this environment. */
export function startCommand(words: string[], environment: Record<string, string>, cwd?: string): RunningCommand {
  const child = spawn(process.execPath, [program, ...words], { cwd, env: { ...compileCache, ...environment } })
  // The command may exit before it has read its standard input.
  child.stdin.on('error', () => {})
  const ended = Promise.all([text(child.stdout).catch(() => 'closed'), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr]) => ({ code: child.exitCode, stdout, stderr }),
  )
  return { child, ended }
}

let runs = 0
let lastRun: Promise<unknown> = Promise.resolve()

/**
 * Runs `kith` in this process, which saves the 0.55 s of processor time that a start takes. It is for promises about a
 * command, not about its process. Runs that start together follow each other, because they share standard output and the
 * current folder.
 */
export function runInProcess(
  words: string[],
  environment: Record<string, string>,
  cwd = process.cwd(),
  input?: Readable,
): Promise<CommandResult> {
  const run = lastRun.then(() => runProgram(words, environment, cwd, input))
  lastRun = run.catch(() => {})
  return run
}

async function runProgram(
  words: string[],
  environment: Record<string, string>,
  cwd: string,
  input?: Readable,
): Promise<CommandResult> {
  const { argv, env } = process
  const folder = process.cwd()
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)]
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin')!
  try {
    process.chdir(cwd)
    if (input) Object.defineProperty(process, 'stdin', { configurable: true, value: input })
    Object.assign(process, { argv: [process.execPath, program, ...words], env: { ...environment } })
    // The program runs while it is imported. Only this module is loaded again each time.
    await import(`${pathToFileURL(program)}?run=${++runs}`)
    return { code: Number(process.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    stdout.end()
    stderr.end()
    Object.defineProperty(process, 'stdin', stdin)
    Object.assign(process, { argv, env, exitCode: undefined })
    process.chdir(folder)
  }
}

/**
 * Lets shell scripts run `kith` in this process, for the reason of {@link runInProcess}. `script` is the body of a shell
 * script `kith`. It reads standard input only for the file `-`.
 */
export async function serveCommands(folder: string): Promise<{ script: string; stop(): Promise<void> }> {
  const socket = join(folder, 'socket')
  const server = createHttpServer(async (request, response) => {
    const call = decodeURIComponent(request.url!)
    const read = async (name: string) => (await readFile(join(call, name), 'utf8')).split('\0').slice(0, -1)
    const environment = Object.fromEntries(
      (await read('environment')).map(line => line.split(/=(.*)/s) as [string, string]),
    )
    const input = createReadStream(join(call, 'input'))
    const result = await runInProcess(await read('words'), environment, environment.PWD, input)
    await writeFile(join(call, 'stdout'), result.stdout)
    await writeFile(join(call, 'stderr'), result.stderr)
    response.end(String(result.code))
  })
  await once(server.listen(socket), 'listening')
  const script = `call=$(mktemp -d ${quote(join(folder, 'call.XXXXXX'))})
printf '%s\\0' "$@" > "$call/words"
env -0 > "$call/environment"
case " $* " in *' - '*|*' @- '*) cat > "$call/input" ;; *) : > "$call/input" ;; esac
code=$(curl --silent --unix-socket ${quote(socket)} "http://kith$call")
cat "$call/stdout"
cat "$call/stderr" >&2
exit "$code"`
  return { script, stop: async () => void server.close() }
}

/** Keeps what is written to a stream, instead of writing it, until `end`. */
function capture(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  const parts: Buffer[] = []
  const listeners = stream.listeners('error')
  const { write } = stream
  stream.write = (part: string | Uint8Array, ...more: unknown[]) => {
    parts.push(Buffer.from(part as string))
    const callback = more.at(-1)
    if (typeof callback === 'function') callback()
    return true
  }
  return {
    text: () => Buffer.concat(parts).toString(),
    end: () => {
      stream.write = write
      for (const listener of stream.listeners('error'))
        if (!listeners.includes(listener)) stream.off('error', listener as () => void)
    },
  }
}

/**
 * Starts a TCP proxy that breaks a connection after `up` bytes to the service or `down` bytes from it: once, or again and
 * again with `repeats`.
 */
export async function breakingProxy(
  address: string,
  { up = Number.POSITIVE_INFINITY, down = Number.POSITIVE_INFINITY, repeats = false },
): Promise<{ address: string; server: Server; cuts: () => number }> {
  const { hostname, port } = new URL(address)
  let left = { up, down }
  let cuts = 0
  const server = createServer(clientSocket => {
    const serviceSocket = connect({ host: hostname, port: Number(port) })
    const cut = () => [clientSocket, serviceSocket].map(socket => socket.destroy())
    const relay = (from: Socket, to: Socket, direction: 'up' | 'down') => {
      from.on('error', cut).on('close', () => to.end())
      from.on('data', (piece: Buffer) => {
        left[direction] -= piece.length
        if (left[direction] > 0) return void to.write(piece)
        left = repeats ? { up, down } : { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY }
        cuts += 1
        // A break can also come in the middle of a line.
        if (direction === 'down') to.write(piece.subarray(0, piece.length / 2))
        cut()
      })
    }
    relay(clientSocket, serviceSocket, 'up')
    relay(serviceSocket, clientSocket, 'down')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { address: `http://127.0.0.1:${(server.address() as { port: number }).port}`, server, cuts: () => cuts }
}
