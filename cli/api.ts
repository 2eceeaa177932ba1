import { STATUS_CODES } from 'node:http'
import { InvalidArgumentError } from 'commander'
import { createTokenSource } from '../client/src/credentials.ts'
import { validToken } from '../client/src/transport.ts'
import { scopes } from '../src/route/scopes.ts'
import { UsageError } from './command.ts'
import { type ConnectionOptions, resolveTarget, type Target } from './connection.ts'
import { readArgument, writeAll } from './files.ts'
import { newPlainCommand } from './kith-command.ts'
import { printStderr, visible } from './terminal.ts'

type Options = ConnectionOptions & { body?: string; header: Headers }

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
/** The service answers within 10 s, and a stream begins at once. */
const tokenTimeoutMs = 12_000

export const apiCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'api',
    'Sends one request to the service. Prints the body of the response on standard output, unchanged, and its status on standard ' +
      'error. Exits with 1 if the status is 400 or more.',
  )
    .examples(
      'api GET /v1/people/ada',
      `api POST /v1/people --body '{"external_id": "ada"}'`,
      'api POST /v1/people/import --body @people.ndjson --header "Content-Type: application/x-ndjson"',
    )
    .argument('<method>', 'The method.', { parse: parseMethod })
    .argument('<path>', 'The path with its query: /v1/people/ada.')
    .option('--body <text>', 'The body: JSON, or @ and the name of a file, or - for standard input.')
    .option('--header <name:value>', 'A header of the request (repeatable).', {
      parse: parseHeader,
      default: new Headers(),
    })
    .connection()
    .action((method, path, options) => send(environment, method, path, options))

function parseMethod(text: string): string {
  const method = text.toUpperCase()
  if (!methods.includes(method)) throw new InvalidArgumentError(`The methods are ${methods.join(', ')}.`)
  return method
}

function parseHeader(text: string, headers: Headers): Headers {
  const at = text.indexOf(':')
  try {
    const next = new Headers(headers)
    next.append(text.slice(0, Math.max(0, at)).trim(), text.slice(at + 1).trim())
    return next
  } catch {
    throw new InvalidArgumentError('Give name:value.')
  }
}

async function send(environment: NodeJS.ProcessEnv, method: string, path: string, options: Options) {
  if (!path.startsWith('/')) throw new UsageError(`A path begins with a slash: /${path}.`)
  if (options.body !== undefined && /^(GET|HEAD)$/.test(method)) throw new UsageError(`A ${method} has no body.`)
  const target = await resolveTarget(environment, options, scopes.join(' '))
  const headers = new Headers(options.header)
  if (!headers.has('Authorization')) headers.set('Authorization', `Bearer ${await tokenOf(target)}`)
  const body = options.body === undefined ? null : await readArgument(environment, options.body)
  if (body !== null && !headers.has('Content-Type')) headers.set('Content-Type', 'application/json')
  const url = target.url.replace(/\/+$/, '') + path
  const response = await fetch(url, { method, headers, body, redirect: 'manual' }).catch(cause => {
    throw new Error(`${new URL(url).host} cannot be reached. Check the address.`, { cause })
  })
  printStderr(`${response.status} ${STATUS_CODES[response.status] ?? ''}`.trimEnd())
  // Set before the body is printed, because a reader that closes the pipe ends the process.
  if (response.status >= 400) process.exitCode = 1
  await writeAll(process.stdout, partsOf(response))
}

async function tokenOf({ url, token, getToken, clientCredentials }: Target): Promise<string> {
  if (token !== undefined) return validToken(token)
  if (getToken) return getToken()
  const tokenUrl = `${url.replace(/\/+$/, '')}/oauth/token`
  return createTokenSource(fetch, tokenUrl, clientCredentials!, tokenTimeoutMs).get()
}

/** The parts of a body as they arrive, as text that moves no cursor on a terminal. Throws if the body is cut off. */
async function* partsOf({ body }: Response): AsyncGenerator<string | Uint8Array> {
  const decoder = process.stdout.isTTY ? new TextDecoder() : null
  let last = '\n'
  try {
    for await (const chunk of body ?? []) {
      const part = decoder?.decode(chunk, { stream: true }).split('\n').map(visible).join('\n') ?? chunk
      last = (part.at(-1) as string | undefined) ?? last
      yield part
    }
  } catch (cause) {
    throw new Error('The connection broke before the end of the response.', { cause })
  }
  if (decoder && last !== '\n') yield '\n'
}
