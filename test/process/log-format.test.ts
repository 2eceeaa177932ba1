import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { quote } from '../../src/process/welcome.ts'
import { compileCache } from '../support/command.ts'
import { createTestDatabase } from '../support/database.ts'
import { checkout, endProcesses, firstStepsOf, launch, terminate } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let terminal: ChildProcess | undefined

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  if (terminal?.exitCode === null && terminal.kill('SIGKILL')) await once(terminal, 'exit')
  terminal = undefined
  await endProcesses()
  await database.drop()
})

const { PATH = '' } = process.env

/** Runs `kith serve` in a pseudo-terminal (util-linux `script`) for one request. Returns the terminal's output. */
async function serveOnTerminal(environment: Record<string, string>): Promise<string> {
  const command = `exec ${quote(process.execPath)} ${quote(join(checkout, 'cli', 'kith.js'))} serve`
  const settings = { PATH, DATABASE_URL: database.url, PORT: '0', TERM: 'xterm-256color' }
  const env = { ...settings, ...compileCache, ...environment }
  terminal = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], { env })
  let terminalOutput = ''
  terminal.stdout!.setEncoding('utf8').on('data', part => (terminalOutput += part))
  const findAddress = () => /kith is ready at (http:[\d./:]+)/.exec(terminalOutput)?.[1]
  await expect.poll(findAddress, { timeout: 30_000 }).toBeDefined()
  const address = findAddress()
  await (await fetch(`${address}/healthz`)).text()
  await expect.poll(() => terminalOutput).toContain('/healthz')
  const exit = once(terminal, 'exit')
  terminal.stdin!.write('\x03')
  expect(await exit).toEqual([0, null])
  return terminalOutput.replaceAll('\r\n', '\n')
}

const isJson = (line: string) => line.startsWith('{') && JSON.parse(line) !== undefined
const linesOf = (text: string) => text.split('\n').filter(line => line !== '')

describe('the log', { timeout: 90_000 }, () => {
  it('is one JSON object per line, from start to shutdown, when standard output is not a terminal', async () => {
    const kith = launch({ DATABASE_URL: database.url })
    const address = await kith.ready
    await (await fetch(`${address}/healthz`)).text()
    expect(await terminate(kith)).toBe(0)
    const lines = linesOf(kith.output.stdout)
    expect(lines.filter(line => !isJson(line))).toEqual([])
    const entries = lines.map(line => JSON.parse(line))
    expect(entries).toContainEqual(expect.objectContaining({ msg: 'request', route: '/healthz' }))
    expect(entries).toContainEqual({
      level: 30,
      time: expect.any(Number),
      address,
      console: expect.stringContaining(`${address}/console/sign-in#code=default.`),
      hint: expect.stringContaining('DATABASE_URL'),
      first_steps: [expect.stringMatching(/^TOKEN=/), expect.any(String), expect.any(String)],
      msg: `kith is ready at ${address}`,
    })
    expect(entries.at(-1)).toMatchObject({ msg: 'draining', signal: 'SIGTERM' })
  })

  it('is readable text on a terminal: times, levels, colors, a link to the console, and the three lines to paste', async () => {
    const colored = await serveOnTerminal({})
    expect(colored).not.toBe(stripVTControlCharacters(colored))
    const lines = linesOf(stripVTControlCharacters(colored))
    expect(lines.filter(line => /^[{[]"|^\{/.test(line))).toEqual([])
    expect(lines[0]).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: kith is starting \{"version":"[^"]+","node":"[^"]+"\}$/)
    expect(lines).toContainEqual(
      expect.stringMatching(
        /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: GET \/healthz 200 in [\d.]+ ms \{"request_id":"[^"]+"\}$/,
      ),
    )
    const address = /ready at (\S+)/.exec(colored)![1]
    const [link, ...pasteable] = lines.filter(line => line.startsWith('  '))
    expect(link).toMatch(/^ {2}http:\S+\/console\/sign-in#code=default\.[\w-]{43}$/)
    expect(pasteable).toHaveLength(3)
    expect(pasteable[0]).toMatch(/^ {2}TOKEN=\$\(npm .* token --org default --scope "people:read people:write"\)$/)
    expect(pasteable[2]).toBe(`  curl -s -H "Authorization: Bearer $TOKEN" ${address}/v1/people/first`)
  })

  it('has no colors on a terminal with NO_COLOR, and is JSON on a terminal with KITH_LOG_FORMAT=json', async () => {
    const plain = await serveOnTerminal({ NO_COLOR: '1' })
    expect(plain).toBe(stripVTControlCharacters(plain))
    expect(plain).toContain('INFO: kith is ready at')
    const json = await serveOnTerminal({ KITH_LOG_FORMAT: 'json' })
    expect(linesOf(json.replace('^C', '')).filter(line => !isJson(line))).toEqual([])
  })

  it('is readable text without a terminal with KITH_LOG_FORMAT=pretty, down to the last line', async () => {
    const kith = launch({ DATABASE_URL: database.url, KITH_LOG_FORMAT: 'pretty' })
    await expect.poll(() => kith.output.stdout, { timeout: 30_000 }).toMatch(/ INFO: kith is ready at http/)
    expect(firstStepsOf(kith)).toEqual([])
    expect(await terminate(kith)).toBe(0)
    expect(linesOf(kith.output.stdout).at(-1)).toMatch(/ INFO: draining \{"signal":"SIGTERM"\}$/)
    expect(kith.output.stdout).toBe(stripVTControlCharacters(kith.output.stdout))
  })
})
