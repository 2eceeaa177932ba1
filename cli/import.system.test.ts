import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../client/index.ts'
import { runInProcess, startCommand } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'

const service = useService()
let client: Client
let environment: Record<string, string>
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kith-import-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true })
})
beforeEach(async () => {
  const organization = await service.organization()
  client = organization.client
  environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
})

const lines = (count: number) =>
  Array.from({ length: count }, (_, i) => `{"external_id":"p${i}","first_name":"N${i}"}\n`)

const start = (args: string[]) => startCommand(['import', ...args], environment, directory)

describe('Ctrl-C', () => {
  it('stops after the lines sent and says how to continue, which imports the rest', async () => {
    const all = lines(4_000)
    const { child, ended } = start(['people', '-', '--format', 'ndjson', '--json'])
    child.stdin.write(all.slice(0, 3_000).join(''))
    // The service stores people in order, so the last one comes after all others.
    await expect.poll(() => client.people.get('p2999').catch(() => null), { timeout: 20_000 }).not.toBeNull()
    child.kill('SIGINT')
    const { code, stdout, stderr } = await ended
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ received: 3_000, created: 3_000, stopped_after: 3_000 })
    expect(stderr).toContain('Stopped after line 3000')
    await writeFile(join(directory, 'people.ndjson'), all.join(''))
    const words = ['import', 'people', 'people.ndjson', '--skip-lines', '3000', '--json']
    const rest = await runInProcess(words, environment, directory)
    expect(JSON.parse(rest.stdout)).toMatchObject({ created: 1_000 })
  })

  it('stops the import immediately the second time', async () => {
    const { child, ended } = start(['people', '-', '--format', 'ndjson'])
    child.stdin.write(lines(1).join(''))
    await expect.poll(() => client.people.get('p0').catch(() => null), { timeout: 20_000 }).not.toBeNull()
    child.kill('SIGINT')
    child.kill('SIGINT')
    expect((await ended).code).toBe(1)
  })

  it('stops an import that has sent nothing', async () => {
    const { child, ended } = start(['people', '-', '--format', 'ndjson'])
    await once(child, 'spawn')
    child.kill('SIGINT')
    expect((await ended).code).not.toBe(0)
  })
})
