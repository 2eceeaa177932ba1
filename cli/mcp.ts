import { randomBytes } from 'node:crypto'
import { type Client, isKithError } from '../client/index.ts'
import { type Api, ApiRefusal } from '../src/assistants/api.ts'
import { createConfirmations } from '../src/assistants/confirmations.ts'
import { loadAssistant } from '../src/assistants/server.ts'
import { parseWithAllDigits } from '../src/values/parse-json.ts'
import { UsageError } from './command.ts'
import { type ConnectionOptions, connect } from './connection.ts'
import { errorMessage } from './error-message.ts'
import { newPlainCommand } from './kith-command.ts'
import { printStderr } from './terminal.ts'

type Options = ConnectionOptions & { write?: true }

export const mcpCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'mcp',
    'Serves tools to an assistant by the Model Context Protocol, on standard input and output, until the input ends. The assistant sees ' +
      'what the token and its role may see; see docs/assistants.md.',
  )
    .examples('mcp --url https://kith.example.org --token-file assistant-token.txt', 'mcp --profile shop --write')
    .option('--write', 'Also tools that create and change one entity, each after a dry run.')
    .connection()
    .action(options => serve(environment, options))

const readScopes = 'people:read records:read consents:read schema:read changes:read'
const writeScopes = 'people:write records:write'

async function serve(environment: NodeJS.ProcessEnv, options: Options) {
  if (options.tokenFile === '-') throw new UsageError('Standard input is for the assistant. Put the token into a file.')
  const texts = new WeakMap<Response, string>()
  const client = await connect(environment, options, {
    scope: options.write ? `${readScopes} ${writeScopes}` : readScopes,
    fetch: fetchKeeping(texts),
  })
  const api = apiOf(client, texts)
  const { createServer } = await loadAssistant()
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
  // Only this process creates and checks its confirmations.
  const confirmations = createConfirmations(randomBytes(32))
  serveStdio(() => createServer({ api, mayWrite: options.write === true, confirmations }), {
    maxSubscriptions: 0,
    onerror: error => printStderr(errorMessage(error)),
  })
}

/** A fetch that keeps the text of each response, because the client's parser drops digits of long numbers. */
const fetchKeeping =
  (texts: WeakMap<Response, string>): typeof fetch =>
  async (input, init) => {
    const received = await fetch(input, init)
    const text = await received.text()
    const response = new Response(text, received)
    texts.set(response, text)
    return response
  }

/** Calls the API through the client, like every command. */
const apiOf =
  (client: Client, texts: WeakMap<Response, string>): Api =>
  async ({ method, path, params = {}, query = {}, body, ...options }) => {
    try {
      const { response } = await client
        .request(method, path as never, { params, query, body } as never, options)
        .withResponse()
      return (parseWithAllDigits(texts.get(response)!) as { data: unknown }).data
    } catch (error) {
      if (!isKithError(error)) throw new Error(errorMessage(error))
      const { status, code, sentence, details } = error
      throw new ApiRefusal({ status, error: code, message: sentence, details })
    }
  }
