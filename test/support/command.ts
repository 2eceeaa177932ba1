import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll } from 'vitest'
import { quote } from '../../src/process/welcome.ts'

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

/** Creates a folder for the tests of a file, and removes it after them. */
export function useFolder(): string {
  // After a killed run, the pid in the name tells a later run that it may remove the folder.
  const folder = mkdtempSync(join(tmpdir(), `kith-test-${process.pid}-`))
  afterAll(() => rm(folder, { recursive: true }))
  return folder
}

let runs = 0
let lastRun: Promise<unknown> = Promise.resolve()

/**
 * Runs `kith` in this process, which saves the 0.55 s of processor time that a start takes. It is for promises about a
 * command, not about its process. Runs that start together follow each other, because they share the standard streams
 * and the current folder. With `isTerminal`, the streams are those of a terminal, and the input is typed.
 */
export function runInProcess(
  words: string[],
  environment: Record<string, string>,
  cwd = process.cwd(),
  input: string | Buffer = '',
  isTerminal = false,
): Promise<CommandResult> {
  const run = lastRun.then(() => runProgram(words, environment, { cwd, input, isTerminal }))
  lastRun = run.catch(() => {})
  return run
}

async function runProgram(
  words: string[],
  environment: Record<string, string>,
  { cwd, input, isTerminal }: { cwd: string; input: string | Buffer; isTerminal: boolean },
): Promise<CommandResult> {
  const { argv, env } = process
  const folder = process.cwd()
  const [stdin, stdout, stderr] = [Readable.from([Buffer.from(input)]), new Captured(), new Captured()]
  for (const stream of [stdin, stdout, stderr]) Object.assign(stream, { isTTY: isTerminal })
  const giveBack = replaceStreams({ stdin, stdout, stderr })
  try {
    process.chdir(cwd)
    Object.assign(process, { argv: [process.execPath, program, ...words], env: { ...environment } })
    // The program runs while it is imported. Only this module is loaded again each time.
    await import(`${pathToFileURL(program)}?run=${++runs}`)
    return { code: Number(process.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    giveBack()
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
    const result = await runInProcess(
      await read('words'),
      environment,
      environment.PWD,
      await readFile(join(call, 'input')),
    )
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
  return {
    script,
    stop: async () => {
      server.close()
    },
  }
}

/** Keeps what is written to it. */
class Captured extends Writable {
  #parts: Buffer[] = []

  override _write(part: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#parts.push(part)
    done()
  }

  text(): string {
    return Buffer.concat(this.#parts).toString()
  }
}

/** Replaces standard streams of this process. Returns what undoes it. */
function replaceStreams(streams: Record<'stdin' | 'stdout' | 'stderr', Readable | Writable>): () => void {
  const names = Object.keys(streams) as (keyof typeof streams)[]
  const originals = names.map(name => [name, Object.getOwnPropertyDescriptor(process, name)!] as const)
  for (const name of names) Object.defineProperty(process, name, { value: streams[name], configurable: true })
  return () => {
    for (const [name, original] of originals) Object.defineProperty(process, name, original)
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
