import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { onTestFinished } from 'vitest'
import { compileCache } from './command.ts'

/** The result of a tool: the whole text, the sentences before the data, the data, and whether it is an error. */
// biome-ignore lint/suspicious/noExplicitAny: tests read any member of the data
export type Answered = { text: string; note: string; data: any; isError: boolean }

/** An assistant that has connected by the SDK's own client. */
export type Assistant = {
  client: Client
  call(tool: string, given?: Record<string, unknown>): Promise<Answered>
}

const info = { name: 'a test', version: '1.0.0' }
/** The era of the protocol: `legacy` is that of 2025, with a handshake, `auto` that of 2026. */
type Mode = 'legacy' | 'auto'

/** Connects an assistant to /mcp of a service, until the test ends. */
export async function connectByHttp(
  address: string,
  token: string,
  {
    write = false,
    mode = 'auto',
    headers = {},
  }: { write?: boolean; mode?: Mode; headers?: Record<string, string> } = {},
): Promise<Assistant> {
  const client = new Client(info, { versionNegotiation: { mode } })
  const url = new URL(`${address}/mcp${write ? '?write=true' : ''}`)
  await client.connect(
    new StreamableHTTPClientTransport(url, { authProvider: { token: async () => token }, requestInit: { headers } }),
  )
  onTestFinished(() => client.close())
  return assistantOf(client)
}

const program = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

/** Starts `kith mcp` as a process, and connects an assistant to it, until the test ends. */
export async function connectByStdio(
  environment: Record<string, string>,
  words: string[] = [],
  mode: Mode = 'auto',
): Promise<Assistant> {
  const client = new Client(info, { versionNegotiation: { mode } })
  const env = { ...compileCache, ...environment } as Record<string, string>
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [program, 'mcp', ...words], env, stderr: 'inherit' }),
  )
  onTestFinished(() => client.close())
  return assistantOf(client)
}

const assistantOf = (client: Client): Assistant => ({
  client,
  call: async (name, given = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: given })
    const [{ text }] = content as unknown as [{ text: string }]
    const [, note = '', json] = /^([\s\S]*?)\n?<kith-data>\n(.*)\n<\/kith-data>$/.exec(text) ?? []
    return { text, note, data: json === undefined ? undefined : JSON.parse(json), isError }
  },
})
