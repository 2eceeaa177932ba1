import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { type Organization, useService } from '../test/support/service.ts'

const service = useService()
let organization: Organization
let environment: Record<string, string>
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-follow-'))
})
afterAll(() => rm(folder, { recursive: true }))
beforeEach(async () => {
  organization = await service.organization()
  environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
})

const file = (name: string) => join(folder, name)

describe('kith follow', () => {
  it.each([
    ['a position that is no number', ['--after', 'x'], 2, /whole number/],
    ['an unknown subject', ['--subject', 'people'], 2, /person, record/],
    ['an unknown stack', ['--stack', 'nothing'], 1, /not the key of a stack/],
    ['a position beyond the newest change', ['--after', '1000'], 1, /beyond the newest change/],
  ])('refuses %s', async (_, args, exitCode, pattern) => {
    const { code, stdout, stderr } = await runInProcess(['follow', ...args], environment, folder)
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(stderr).toMatch(pattern)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })

  it('has help with examples', async () => {
    const { code, stdout } = await runInProcess(['follow', '--help'], environment, folder)
    expect(code).toBe(0)
    expect(stdout).toMatch(/Examples:\n.*npm run -s kith -- follow/)
  })
})

describe('kith follow --state', () => {
  it('refuses a file of another log_id, and leaves it as it is', async () => {
    await organization.client.people.create({ external_id: 'ada' })
    const text = JSON.stringify({ log_id: '00000000-0000-4000-8000-000000000000', after: 1 })
    await writeFile(file('state.json'), text)
    const { code, stdout, stderr } = await runInProcess(['follow', '--state', 'state.json'], environment, folder)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/another numbering of the change log.*state\.json\. Delete the file to begin again\.\n$/)
    expect(await readFile(file('state.json'), 'utf8')).toBe(text)
  })

  it.each(['', 'x', '{"after":1}', '{"log_id":"x","after":"1"}', 'null'])(
    'refuses the file %j, which is no state',
    async text => {
      await writeFile(file('state.json'), text)
      const { code, stderr } = await runInProcess(['follow', '--state', 'state.json'], environment, folder)
      expect(code).toBe(1)
      expect(stderr).toBe('state.json is not a state file of kith follow. Delete it to begin again.\n')
      expect(await readFile(file('state.json'), 'utf8')).toBe(text)
    },
  )
})
